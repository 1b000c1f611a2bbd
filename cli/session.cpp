#include "session.h"

#include "descriptors.h"
#include "errors.h"
#include "glob.h"
#include "text.h"

#include <fmt/format.h>

#include <chrono>
#include <unordered_set>
#include <utility>

namespace wherry::cli {
namespace {

using std::chrono::ceil;
using std::chrono::milliseconds;

// What a consumer holds of an owner's list; a larger source is pulled in parts, by --range.
constexpr std::size_t ranges_max = 8'000'000;
constexpr std::size_t name_bytes_max = std::size_t{1} << 30;

// "127.0.0.1:7000", as the reference has it.
std::string address_of(const SourceReference& reference) {
  constexpr std::string_view scheme = "wherry://";
  const std::string text = reference.to_string();
  return text.substr(scheme.size(), text.find('/', scheme.size()) - scheme.size());
}

// Scripts with many owners need to know which one it was.
Error with_address(Error error, const SourceReference& reference) {
  const std::string address = address_of(reference);
  if (error.message.find(address) == std::string::npos) {
    error.message = fmt::format("{}: {}", address, error.message);
  }
  return error;
}

class Selection {
public:
  Result<void> add(const std::string& name, const RemoteRange& range) {
    if (!ids_.insert(range.id).second) {
      return {};
    }
    name_bytes_ += name.size();
    if (ids_.size() > ranges_max || name_bytes_ > name_bytes_max) {
      return fail(
          ErrorCode::resource_exhausted,
          fmt::format("more than {} ranges or {} bytes of names were selected; select fewer "
                      "with --range",
                      ranges_max, name_bytes_max));
    }
    selected_.push_back({name, range});
    return {};
  }
  std::vector<NamedRemoteRange> take() { return std::move(selected_); }

private:
  std::vector<NamedRemoteRange> selected_;
  std::unordered_set<std::uint64_t> ids_;
  std::size_t name_bytes_ = 0;
};

struct Glob {
  std::string pattern;
  bool matched = false;
};

Result<void> add_matching(RemoteSource& remote, std::vector<Glob>& globs, Selection& selection) {
  auto listed =
      for_each_page(remote, [&](const std::vector<RangeDescription>& page) -> Result<void> {
        for (const RangeDescription& description : page) {
          for (Glob& glob : globs) {
            if (!glob_match(glob.pattern, description.name)) {
              continue;
            }
            glob.matched = true;
            if (auto added = selection.add(description.name, description.range); !added) {
              return added;
            }
          }
        }
        return {};
      });
  if (!listed) {
    return listed;
  }
  for (const Glob& glob : globs) {
    if (!glob.matched) {
      return fail(ErrorCode::not_found, fmt::format("the source has no range that matches '{}'",
                                                    printable(glob.pattern)));
    }
  }
  return {};
}

} // namespace

Result<TransferEngine> make_engine(const TcpConfig& tcp, std::chrono::nanoseconds close_timeout,
                                   Console& console) {
  EngineOptions options;
  options.tcp = tcp;
  options.close_timeout = ceil<milliseconds>(close_timeout);
  options.limits.open_files = raise_descriptor_limit().library_files;
  options.log = [&console](LogLevel level, std::string_view text) { console.log(level, text); };
  return TransferEngine::create(std::move(options));
}

Result<Session> open_session(const PeerOptions& peer, const TransferOptions& transfer,
                             Console& console) {
  const auto reference = SourceReference::parse(peer.reference);
  if (!reference) {
    return fail(reference.error());
  }
  TcpConfig tcp;
  tcp.payload_checksums = transfer.checksum;
  tcp.connect_timeout = ceil<milliseconds>(peer.connect_timeout);
  // Later than our own, which has the better words.
  tcp.peer_stall_timeout = ceil<milliseconds>(transfer.stall_timeout) + milliseconds(1000);
  tcp.lanes = transfer.lanes.value_or(tcp.lanes);
  auto engine = make_engine(tcp, std::chrono::seconds(2), console);
  if (!engine) {
    return fail(engine.error());
  }
  OpenOptions options;
  options.timeout = peer.connect_timeout;
  options.lanes = transfer.lanes;
  options.path = peer.path;
  auto remote = engine->open(*reference, options);
  if (!remote) {
    return fail(with_address(remote.error(), *reference));
  }
  if (!reference->epoch) {
    console.note(fmt::format("bound to {}", remote->reference().to_string()));
  }
  return Session{std::move(*engine), std::move(*remote)};
}

Result<void>
for_each_page(RemoteSource& remote,
              const std::function<Result<void>(const std::vector<RangeDescription>&)>& take) {
  std::optional<std::uint64_t> page;
  do {
    auto description = remote.describe(page);
    if (!description) {
      return fail(description.error());
    }
    if (auto taken = take(description->ranges); !taken) {
      return taken;
    }
    page = description->next;
    if (page && description->ranges.empty()) {
      return fail(ErrorCode::protocol_mismatch,
                  "the owner sent an empty page of ranges that is not the last");
    }
  } while (page);
  return {};
}

Result<std::vector<NamedRemoteRange>> select_ranges(RemoteSource& remote,
                                                    const std::vector<std::string>& wanted) {
  Selection selection;
  std::vector<Glob> globs;
  if (wanted.empty()) {
    globs.push_back({"**", true}); // an empty source is no error here
  }
  for (const std::string& name : wanted) {
    auto range = remote.range(name);
    if (range) {
      if (auto added = selection.add(name, *range); !added) {
        return fail(added.error());
      }
    } else if (range.error().code == ErrorCode::not_found && is_glob(name)) {
      globs.push_back({name});
    } else {
      return fail(range.error());
    }
  }
  if (!globs.empty()) {
    if (auto added = add_matching(remote, globs, selection); !added) {
      return fail(added.error());
    }
  }
  return selection.take();
}

} // namespace wherry::cli
