// SIGINT and SIGTERM. They are blocked everywhere and taken by a thread of this object, so that no
// library code runs in a handler. A command notices and ends by itself; where it is stuck in a
// call, the thread removes the part files and ends the process. One object a process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace wherry::cli {

class Interrupt {
public:
  /// Before any other thread starts: they inherit the mask. Ignores SIGPIPE and SIGXFSZ too.
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// How the command wants to be ended: after `grace` it is ended by force, and at once by that
  /// many signals. At first there is no grace, because there is nothing to clean up.
  void expect(std::chrono::nanoseconds grace, unsigned signals_to_force);

  /// The first signal; 0 while there is none.
  int signal() const;
  unsigned count() const;
  /// Until there are more than `seen` signals, or for `duration`.
  void wait(unsigned seen, std::chrono::nanoseconds duration);

  /// Files that must not outlive this process. Removing one takes it off the list.
  void add_part_file(const std::string& path);
  void remove_part_file(const std::string& path);
  /// The rename that makes a part file whole: `rename` runs with force held back, so that a file is
  /// either on the list or renamed. Returns what it returned; 0 takes the file off the list.
  template <class Rename>
  int complete_part_file(const std::string& path, Rename&& rename) {
    const std::lock_guard lock(mutex_);
    const int number = rename();
    if (number == 0) {
      part_files_.erase(path);
    }
    return number;
  }

private:
  void run();
  void take(int signal);
  [[noreturn]] void force();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int signal_ = 0;
  unsigned count_ = 0;
  std::chrono::nanoseconds grace_{0};
  unsigned signals_to_force_ = 1;
  std::set<std::string> part_files_;
  int signals_ = -1; // signalfd
  int wakeup_ = -1;  // eventfd, readable when the object goes
  std::thread thread_;
};

} // namespace wherry::cli
