// SPDX-License-Identifier: Apache-2.0
#include "recorder/snap.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "recorder/bundle.h"
#include "target/byte_reader.h"

namespace clew::recorder {

namespace {

using target::ByteReader;

constexpr uint64_t kSnapMagic = 0x50414e5357454c43;  // "CLEWSNAP"
constexpr uint32_t kSnapVersion = 2;
constexpr uint64_t kHeaderBytes = 16 + sizeof(Digest);
constexpr uint64_t kSectionBytes = 24;
constexpr uint32_t kSectionsMax = 64;
constexpr uint64_t kSnapBytesMax = uint64_t{1} << 32;
constexpr size_t kConditionBytesMax = size_t{64} << 10;  // As a policy's file.

enum class SectionType : uint32_t {
  Reason = 1,
  Process = 2,
  Modules = 3,
  Threads = 4,
  Lobes = 5,
  Calls = 6,
  Condition = 7,
  Times = 8,
  Streams = 9,
  Scripts = 10,
};

class Bytes {
 public:
  template <typename T>
  void put(const T& value) {
    const auto* const from = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(value));
  }
  void put_text(const std::string& text) {
    put(static_cast<uint32_t>(text.size()));
    bytes_.insert(bytes_.end(), text.begin(), text.end());
  }
  void put_words(const std::vector<uint32_t>& words) {
    const auto* const from = reinterpret_cast<const uint8_t*>(words.data());
    bytes_.insert(bytes_.end(), from, from + words.size() * sizeof(uint32_t));
  }
  void put_bytes(const std::vector<uint8_t>& bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  [[nodiscard]] size_t size() const { return bytes_.size(); }
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<uint8_t> bytes_;
};

Digest digest_of(std::span<const uint8_t> bytes) {
  target::Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

std::vector<uint8_t> process_of(const Snap& snap) {
  Bytes out;
  out.put(snap.pid);
  out.put(static_cast<uint32_t>(snap.command.size()));
  for (const std::string& word : snap.command)
    out.put_text(word);
  return out.take();
}

std::vector<uint8_t> reason_of(const Snap& snap) {
  Bytes out;
  out.put(snap.reason.signal);
  out.put(snap.reason.code);
  out.put(snap.reason.thread);
  out.put(static_cast<uint32_t>(snap.reason.trigger));
  out.put(snap.reason.address);
  out.put(snap.reason.time_ns);
  return out.take();
}

std::vector<uint8_t> modules_of(const Snap& snap) {
  Bytes out;
  out.put(static_cast<uint32_t>(snap.modules.size()));
  out.put(uint32_t{0});
  for (const SnapModule& module : snap.modules) {
    out.put(module.load_bias);
    out.put(module.copy_address);
    out.put(module.code_size);
    out.put(module.recipe.cursor);
    out.put(module.recipe.first_id);
    out.put(module.id_count);
    out.put(static_cast<uint8_t>(module.recipe.loops));
    out.put(static_cast<uint8_t>(module.recipe.front_end));
    out.put(uint16_t{0});
    out.put(module.digest);
    out.put_text(module.build_id);
    out.put_text(module.path);
    out.put(static_cast<uint32_t>(module.recipe.imports.size()));
    for (const KnownImport& import : module.recipe.imports) {
      out.put(import.slot);
      out.put(import.own);
    }
  }
  return out.take();
}

std::vector<uint8_t> threads_of(const Snap& snap) {
  Bytes out;
  out.put(static_cast<uint32_t>(snap.threads.size()));
  out.put(uint32_t{0});
  for (const SnapThread& thread : snap.threads) {
    out.put(thread.thread);
    out.put(thread.slot);
    out.put(thread.registers);
  }
  return out.take();
}

std::vector<uint8_t> lobes_of(const Snap& snap) {
  Bytes out;
  out.put(static_cast<uint32_t>(snap.lobes.size()));
  out.put(uint32_t{0});
  for (const SnapLobe& lobe : snap.lobes) {
    out.put(lobe.slot);
    out.put(lobe.thread);
    out.put(lobe.cursor);
    out.put(lobe.address);
    out.put_words(lobe.words);
  }
  return out.take();
}

std::vector<uint8_t> calls_of(const Snap& snap) {
  Bytes out;
  for (const SnapThread& thread : snap.threads)
    out.put(thread.called_from);
  return out.take();
}

std::vector<uint8_t> clocks_of(const Snap& snap) {
  Bytes out;
  for (const ClockPair& moment : {snap.began, snap.taken}) {
    out.put(moment.ticks);
    out.put(moment.time_ns);
  }
  for (const SnapModule& module : snap.modules) {
    out.put(static_cast<uint32_t>(module.recipe.stamped.size()));
    out.put(uint32_t{0});
    for (const StampedImport& import : module.recipe.stamped) {
      out.put(import.slot);
      out.put(import.where);
      out.put(transfer_bits(import));
    }
  }
  return out.take();
}

std::vector<uint8_t> streams_of(const Snap& snap) {
  Bytes out;
  out.put(snap.forked);
  out.put_text(snap.network);
  out.put(static_cast<uint32_t>(snap.streams.size()));
  for (const SnapStream& stream : snap.streams) {
    out.put(stream.descriptor);
    out.put(stream.sent);
    out.put(stream.received);
    out.put_text(stream.own);
    out.put_text(stream.peer);
  }
  return out.take();
}

std::vector<uint8_t> scripts_of(const Scripts& scripts) {
  Bytes out;
  out.put(static_cast<uint32_t>(scripts.interpreters.size()));
  for (const Interpreter& one : scripts.interpreters) {
    out.put(one.loop);
    out.put_text(one.name);
    out.put_text(one.problem);
  }
  out.put(static_cast<uint32_t>(scripts.functions.size()));
  for (const ScriptFunction& one : scripts.functions) {
    out.put_text(one.name);
    out.put_text(one.file);
  }
  out.put(static_cast<uint32_t>(scripts.stacks.size()));
  for (const ScriptStack& stack : scripts.stacks) {
    out.put(stack.thread);
    out.put(stack.interpreter);
    out.put(uint32_t{stack.is_whole});
    out.put(static_cast<uint32_t>(stack.calls.size()));
    for (const ScriptCall& call : stack.calls) {
      out.put(call.function);
      out.put(call.line);
      out.put(uint32_t{call.is_loops_first});
    }
  }
  return out.take();
}

std::string read_text(ByteReader& in) {
  const auto size = in.read<uint32_t>();
  const std::span<const uint8_t> bytes = in.read_bytes(size);
  return {bytes.begin(), bytes.end()};
}

std::vector<uint32_t> read_words(ByteReader& in, size_t count) {
  const std::span<const uint8_t> bytes = in.read_bytes(count * sizeof(uint32_t));
  std::vector<uint32_t> words(bytes.size() / sizeof(uint32_t));
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

void read_reason(ByteReader& in, Snap& snap) {
  snap.reason.signal = in.read<int32_t>();
  snap.reason.code = in.read<int32_t>();
  snap.reason.thread = in.read<int32_t>();
  snap.reason.trigger = static_cast<SnapTrigger>(in.read<uint32_t>());
  snap.reason.address = in.read<uint64_t>();
  snap.reason.time_ns = in.read<uint64_t>();
}

void read_process(ByteReader& in, Snap& snap) {
  snap.pid = in.read<int32_t>();
  const auto count = in.read<uint32_t>();
  for (uint32_t i = 0; i < count && !in.failed(); ++i)
    snap.command.push_back(read_text(in));
}

// What records in a process is the same in all its modules: readers of it count on that.
bool have_one_front_end(const Snap& snap) {
  std::optional<FrontEnd> first;
  return std::all_of(snap.modules.begin(), snap.modules.end(), [&first](const SnapModule& one) {
    if (one.id_count == 0) return true;  // It is not recorded.
    if (!first) first = one.recipe.front_end;
    return *first == one.recipe.front_end;
  });
}

bool read_modules(ByteReader& in, Snap& snap) {
  const auto count = in.read<uint32_t>();
  (void)in.read<uint32_t>();
  for (uint32_t i = 0; i < count && !in.failed(); ++i) {
    SnapModule module;
    module.load_bias = in.read<uint64_t>();
    module.copy_address = in.read<uint64_t>();
    module.code_size = in.read<uint64_t>();
    module.recipe.cursor = in.read<uint32_t>();
    module.recipe.first_id = in.read<uint32_t>();
    module.id_count = in.read<uint32_t>();
    module.recipe.loops = in.read<uint8_t>() == 0 ? Loops::Once : Loops::Each;
    const auto front_end = in.read<uint8_t>();
    if (front_end > static_cast<uint8_t>(FrontEnd::Guards)) return false;
    module.recipe.front_end = static_cast<FrontEnd>(front_end);
    (void)in.read<uint16_t>();
    module.digest = in.read<Digest>();
    module.build_id = read_text(in);
    module.path = read_text(in);
    const auto imports = in.read<uint32_t>();
    for (uint32_t k = 0; k < imports && !in.failed(); ++k) {
      const auto slot = in.read<uint64_t>();
      module.recipe.imports.push_back({slot, in.read<uint64_t>()});
    }
    snap.modules.push_back(std::move(module));
  }
  return have_one_front_end(snap);
}

void read_threads(ByteReader& in, Snap& snap) {
  const auto count = in.read<uint32_t>();
  (void)in.read<uint32_t>();
  for (uint32_t i = 0; i < count && !in.failed(); ++i) {
    SnapThread thread;
    thread.thread = in.read<int32_t>();
    thread.slot = in.read<uint32_t>();
    thread.registers = in.read<user_regs_struct>();
    snap.threads.push_back(thread);
  }
}

void read_lobes(ByteReader& in, Snap& snap) {
  const auto count = in.read<uint32_t>();
  (void)in.read<uint32_t>();
  for (uint32_t i = 0; i < count && !in.failed(); ++i) {
    SnapLobe lobe;
    lobe.slot = in.read<uint32_t>();
    lobe.thread = in.read<int32_t>();
    lobe.cursor = in.read<uint64_t>();
    lobe.address = in.read<uint64_t>();
    lobe.words = read_words(in, abi::kLobeWords);
    snap.lobes.push_back(std::move(lobe));
  }
}

void read_calls(ByteReader& in, Snap& snap) {
  for (SnapThread& thread : snap.threads)
    thread.called_from = in.read<uint64_t>();
}

bool read_times(ByteReader& in, Snap& snap) {
  for (ClockPair* const moment : {&snap.began, &snap.taken}) {
    moment->ticks = in.read<uint64_t>();
    moment->time_ns = in.read<uint64_t>();
  }
  for (SnapModule& module : snap.modules) {
    const auto count = in.read<uint32_t>();
    (void)in.read<uint32_t>();
    for (uint32_t i = 0; i < count && !in.failed(); ++i) {
      const auto slot = in.read<uint64_t>();
      const auto where = in.read<uint32_t>();
      const auto transfer = in.read<uint32_t>();
      if (where == 0 || where > static_cast<uint32_t>(Stamped::Around)) return false;
      const auto import = stamped_import(slot, static_cast<Stamped>(where), transfer);
      if (!import) return false;
      module.recipe.stamped.push_back(*import);
    }
  }
  return !in.failed();
}

// Of a socket, with nothing that would disturb a terminal.
bool is_address(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef.:[]%") == std::string_view::npos;
}

bool read_streams(ByteReader& in, Snap& snap) {
  snap.forked = in.read<uint64_t>();
  snap.network = read_text(in);
  const auto count = in.read<uint32_t>();
  for (uint32_t i = 0; i < count && !in.failed(); ++i) {
    SnapStream stream;
    stream.descriptor = in.read<uint32_t>();
    stream.sent = in.read<uint64_t>();
    stream.received = in.read<uint64_t>();
    stream.own = read_text(in);
    stream.peer = read_text(in);
    if (!is_address(stream.own) || !is_address(stream.peer)) return false;
    snap.streams.push_back(std::move(stream));
  }
  return !in.failed();
}

bool read_scripts(ByteReader& in, Scripts& scripts) {
  for (auto count = in.read<uint32_t>(); count != 0 && !in.failed(); --count) {
    const auto loop = in.read<uint64_t>();
    std::string name = read_text(in);
    scripts.interpreters.push_back(
        {.name = std::move(name), .problem = read_text(in), .loop = loop});
  }
  for (auto count = in.read<uint32_t>(); count != 0 && !in.failed(); --count) {
    std::string name = read_text(in);
    scripts.functions.push_back({.name = std::move(name), .file = read_text(in)});
  }
  for (auto count = in.read<uint32_t>(); count != 0 && !in.failed(); --count) {
    ScriptStack& stack = scripts.stacks.emplace_back();
    stack.thread = in.read<int32_t>();
    stack.interpreter = in.read<uint32_t>();
    stack.is_whole = in.read<uint32_t>() != 0;
    for (auto calls = in.read<uint32_t>(); calls != 0 && !in.failed(); --calls) {
      const auto function = in.read<uint32_t>();
      const auto line = in.read<uint32_t>();
      stack.calls.push_back({function, line, in.read<uint32_t>() != 0});
    }
  }
  return !in.failed() && is_sound(scripts);
}

// Those of a later version are passed by.
bool read_section(SectionType type, std::span<const uint8_t> bytes, Snap& snap) {
  ByteReader in(bytes);
  switch (type) {
    case SectionType::Reason:
      read_reason(in, snap);
      break;
    case SectionType::Process:
      read_process(in, snap);
      break;
    case SectionType::Modules:
      if (!read_modules(in, snap)) return false;
      break;
    case SectionType::Threads:
      read_threads(in, snap);
      break;
    case SectionType::Lobes:
      read_lobes(in, snap);
      break;
    case SectionType::Calls:
      read_calls(in, snap);
      break;
    case SectionType::Condition:
      snap.condition.assign(bytes.begin(), bytes.end());
      return bytes.size() <= kConditionBytesMax;
    case SectionType::Times:
      return read_times(in, snap);
    case SectionType::Streams:
      return read_streams(in, snap);
    case SectionType::Scripts:
      return read_scripts(in, snap.scripts);
  }
  return !in.failed();
}

Expected<std::vector<uint8_t>> read_file(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0) {
    return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size > kSnapBytesMax) {
    return fail(ErrorCode::Refused, fmt::format("{} is no snap", path));
  }
  std::vector<uint8_t> bytes(size);
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace

std::vector<uint8_t> snap_bytes(const Snap& snap) {
  std::vector<std::pair<SectionType, std::vector<uint8_t>>> sections = {
      {SectionType::Reason, reason_of(snap)},   {SectionType::Process, process_of(snap)},
      {SectionType::Modules, modules_of(snap)}, {SectionType::Threads, threads_of(snap)},
      {SectionType::Lobes, lobes_of(snap)},     {SectionType::Calls, calls_of(snap)},
      {SectionType::Times, clocks_of(snap)},    {SectionType::Streams, streams_of(snap)},
  };
  if (!snap.condition.empty()) {
    sections.emplace_back(SectionType::Condition,
                          std::vector<uint8_t>(snap.condition.begin(), snap.condition.end()));
  }
  if (!snap.scripts.interpreters.empty())
    sections.emplace_back(SectionType::Scripts, scripts_of(snap.scripts));
  Bytes out;
  uint64_t offset = kHeaderBytes + sections.size() * kSectionBytes;
  for (const auto& [type, bytes] : sections) {
    out.put(type);
    out.put(uint32_t{0});
    out.put(offset);
    out.put(uint64_t{bytes.size()});
    offset += bytes.size();
  }
  for (const auto& [type, bytes] : sections)
    out.put_bytes(bytes);
  return with_header(static_cast<uint32_t>(sections.size()), out.take());
}

std::vector<uint8_t> with_header(uint32_t sections, const std::vector<uint8_t>& rest) {
  Bytes out;
  out.put(kSnapMagic);
  out.put(kSnapVersion);
  out.put(sections);
  out.put(digest_of(rest));
  out.put_bytes(rest);
  return out.take();
}

// Each slot has one lobe, and each lobe one thread; else little of a file would be much work.
bool has_own_lobes(const Snap& snap) {
  std::set<uint32_t> lobes;
  for (const SnapLobe& lobe : snap.lobes) {
    if (!lobes.insert(lobe.slot).second) return false;
  }
  std::set<uint32_t> threads;
  return std::all_of(snap.threads.begin(), snap.threads.end(), [&](const SnapThread& thread) {
    return thread.slot == kNoSlot || threads.insert(thread.slot).second;
  });
}

Expected<Snap> parse_snap(std::span<const uint8_t> bytes) {
  ByteReader in(bytes);
  if (in.read<uint64_t>() != kSnapMagic) return fail(ErrorCode::Refused, "it is no snap");
  const auto version = in.read<uint32_t>();
  if (version != kSnapVersion) {
    return fail(ErrorCode::Refused,
                fmt::format("it has version {} of snaps, and {} is known", version, kSnapVersion));
  }
  const auto count = in.read<uint32_t>();
  const auto digest = in.read<Digest>();
  if (in.failed() || count > kSectionsMax || digest != digest_of(bytes.subspan(kHeaderBytes))) {
    return fail(ErrorCode::Refused, "it is cut or damaged");
  }
  Snap snap;
  std::set<SectionType> seen;
  for (uint32_t i = 0; i < count; ++i) {
    const auto type = in.read<SectionType>();
    (void)in.read<uint32_t>();
    const auto offset = in.read<uint64_t>();
    const auto size = in.read<uint64_t>();
    const bool is_inside = offset <= bytes.size() && size <= bytes.size() - offset;
    const bool is_new = seen.insert(type).second;
    if (in.failed() || !is_inside || !is_new ||
        !read_section(type, bytes.subspan(offset, size), snap)) {
      return fail(ErrorCode::Refused, "it is cut or damaged");
    }
  }
  if (!has_own_lobes(snap) || snap.reason.trigger > SnapTrigger::Heartbeat)
    return fail(ErrorCode::Refused, "it is cut or damaged");
  return snap;
}

Expected<void> write_snap(const std::string& path, const Snap& snap) {
  constexpr mode_t kOwnerOnly = 0600;
  const std::vector<uint8_t> bytes = snap_bytes(snap);
  const FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly));
  if (!file.valid()) return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = write(file.get(), bytes.data() + done, bytes.size() - done);
    if (put < 0) {
      const int error = errno;
      (void)unlink(path.c_str());  // A part of a snap is none.
      return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(error)));
    }
    done += static_cast<size_t>(put);
  }
  return {};
}

std::string signal_name(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

Expected<Snap> read_snap(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    const std::string inside = CLEW_TRY(snap_in(path));
    Snap snap = CLEW_TRY(read_snap(inside));
    snap.files = path + "/files";
    return snap;
  }
  const std::vector<uint8_t> bytes = CLEW_TRY(read_file(path));
  Expected<Snap> snap = parse_snap(bytes);
  if (!snap) return fail(snap.error().code, fmt::format("{}: {}", path, snap.error().message));
  return snap;
}

}  // namespace clew::recorder
