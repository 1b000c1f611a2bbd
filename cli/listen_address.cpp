#include "listen_address.h"

#include <algorithm>

namespace wherry::cli {

bool is_loopback(std::string_view listen) {
  const std::string_view host = listen.substr(0, listen.rfind(':'));
  const bool digits_and_dots = std::all_of(
      host.begin(), host.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  return host == "localhost" || host == "[::1]" || (host.starts_with("127.") && digits_and_dots);
}

} // namespace wherry::cli
