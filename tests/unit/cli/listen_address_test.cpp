#include "listen_address.h"

#include <gtest/gtest.h>

namespace wherry::cli {
namespace {

TEST(ListenAddress, only_the_loopback_goes_without_a_warning) {
  for (const char* listen : {"127.0.0.1:0", "127.1.2.3:80", "localhost:0", "[::1]:7000"}) {
    EXPECT_TRUE(is_loopback(listen)) << listen;
  }
  for (const char* listen :
       {"0.0.0.0:0", "[::]:0", "10.0.0.1:1", "127.example.org:1", "example.org:1", "", ":0"}) {
    EXPECT_FALSE(is_loopback(listen)) << listen;
  }
}

} // namespace
} // namespace wherry::cli
