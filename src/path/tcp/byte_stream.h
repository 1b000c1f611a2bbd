// What a lane reads from and writes to: a socket, a simulated connection, or a fuzzer's bytes.
#pragma once

#include "os/network.h"

#include <sys/uio.h>

#include <span>

namespace wherry {

class ByteStream {
public:
  virtual ~ByteStream() = default;
  virtual IoResult readv(std::span<const iovec> into) = 0;
  virtual IoResult writev(std::span<const iovec> from) = 0;
};

class SocketStream final : public ByteStream {
public:
  SocketStream(Network& network, SocketId socket) : network_(network), socket_(socket) {}
  IoResult readv(std::span<const iovec> into) override { return network_.readv(socket_, into); }
  IoResult writev(std::span<const iovec> from) override { return network_.writev(socket_, from); }

private:
  Network& network_;
  SocketId socket_;
};

} // namespace wherry
