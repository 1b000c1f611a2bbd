// Loading foreign libraries: all or nothing, with the loader's own words (R2, R3, R5).
#include "os/dynlib/libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace wherry {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using UnaryFunction = double (*)(double);

/// A slot that shows whether it was written.
void* unset() {
  static int mark = 0;
  return &mark;
}

TEST(Libraries, fills_the_table_with_working_functions_and_tells_where_from) {
  void* cosine = unset();
  void* floor_versioned = unset();
  const std::array table = {
      Symbol{"cos", nullptr, true, &cosine},
      Symbol{"floor", "GLIBC_2.2.5", true, &floor_versioned},
  };
  const auto library = make_system_libraries()->load("libm.so.6", table);
  if (!library && library.error().native_call == "dlvsym") {
    GTEST_SKIP() << "GLIBC_2.2.5 is x86-64's: " << library.error().message;
  }
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_EQ(library->soname, "libm.so.6");
  EXPECT_THAT(library->path, HasSubstr("libm"));
  EXPECT_THAT(library->missing_optional, ElementsAre());
  EXPECT_EQ(reinterpret_cast<UnaryFunction>(cosine)(0.0), 1.0);
  EXPECT_EQ(reinterpret_cast<UnaryFunction>(floor_versioned)(1.5), 1.0);
}

TEST(Libraries, R3_a_missing_library_starts_once_with_the_soname_and_gives_the_loaders_reason) {
  void* slot = unset();
  const std::array table = {Symbol{"f", nullptr, true, &slot}};
  const auto library = make_system_libraries()->load("libwherry-missing.so.7", table);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::unavailable);
  EXPECT_EQ(library.error().native_call, "dlopen");
  EXPECT_THAT(library.error().message, StartsWith("libwherry-missing.so.7: "));
  EXPECT_THAT(library.error().message, HasSubstr("No such file"));
  EXPECT_THAT(library.error().message.substr(1), Not(HasSubstr("libwherry-missing.so.7")));
  EXPECT_EQ(slot, nullptr);
}

TEST(Libraries, R3_a_missing_required_symbol_is_named_and_leaves_no_slot_filled) {
  void* good = unset();
  void* bad = unset();
  const std::array table = {
      Symbol{"cos", nullptr, true, &good},
      Symbol{"wherry_no_such_function", nullptr, true, &bad},
  };
  const auto library = make_system_libraries()->load("libm.so.6", table);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::unavailable);
  EXPECT_THAT(library.error().message, StartsWith("libm.so.6: "));
  EXPECT_THAT(library.error().message, HasSubstr("wherry_no_such_function"));
  EXPECT_EQ(good, nullptr);
  EXPECT_EQ(bad, nullptr);
}

TEST(Libraries, R3_a_symbol_in_the_wrong_version_is_missing_and_the_version_is_named) {
  void* slot = unset();
  const std::array table = {Symbol{"cos", "GLIBC_99.9", true, &slot}};
  const auto library = make_system_libraries()->load("libm.so.6", table);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().native_call, "dlvsym");
  EXPECT_THAT(library.error().message, StartsWith("libm.so.6: "));
  EXPECT_THAT(library.error().message, HasSubstr("cos (version GLIBC_99.9)"));
}

TEST(Libraries, R3_missing_optional_symbols_are_listed_and_their_slots_null) {
  void* good = unset();
  void* absent = unset();
  void* old = unset();
  const std::array table = {
      Symbol{"wherry_later", nullptr, false, &absent},
      Symbol{"cos", nullptr, true, &good},
      Symbol{"sin", "GLIBC_99.9", false, &old},
  };
  const auto library = make_system_libraries()->load("libm.so.6", table);
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_THAT(library->missing_optional, ElementsAre("wherry_later", "sin"));
  EXPECT_EQ(absent, nullptr);
  EXPECT_EQ(old, nullptr);
  EXPECT_NE(good, nullptr);
}

TEST(Libraries, R5_loading_again_gives_the_same_addresses) {
  void* first = nullptr;
  void* second = nullptr;
  const auto libraries = make_system_libraries();
  ASSERT_TRUE(libraries->load("libm.so.6", std::array{Symbol{"cos", nullptr, true, &first}}));
  ASSERT_TRUE(libraries->load("libm.so.6", std::array{Symbol{"cos", nullptr, true, &second}}));
  EXPECT_EQ(first, second);
}

} // namespace
} // namespace wherry
