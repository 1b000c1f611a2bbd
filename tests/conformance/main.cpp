// Runs the cases, and says at the end what was served by which variant and what was skipped, and
// why: a skip that nobody sees is a hole.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>

namespace {

class Tally final : public testing::EmptyTestEventListener {
public:
  void OnTestEnd(const testing::TestInfo& info) override {
    const std::string name = info.name();
    const std::string variant = name.substr(name.rfind('/') + 1);
    const testing::TestResult& result = *info.result();
    if (!result.Skipped()) {
      ++ran_[variant];
      return;
    }
    for (int i = 0; i < result.total_part_count(); ++i) {
      if (result.GetTestPartResult(i).skipped()) {
        std::string why = result.GetTestPartResult(i).message();
        ++skipped_[variant][why.substr(0, why.find('\n'))];
      }
    }
  }

  void OnTestProgramEnd(const testing::UnitTest&) override {
    for (const auto& [variant, cases] : ran_) {
      std::printf("conformance: %s: %d cases ran\n", variant.c_str(), cases);
    }
    for (const auto& [variant, reasons] : skipped_) {
      for (const auto& [why, cases] : reasons) {
        std::printf("conformance: %s: %d skipped: %s\n", variant.c_str(), cases, why.c_str());
      }
    }
  }

private:
  std::map<std::string, int> ran_;
  std::map<std::string, std::map<std::string, int>> skipped_;
};

} // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new Tally);
  return RUN_ALL_TESTS();
}
