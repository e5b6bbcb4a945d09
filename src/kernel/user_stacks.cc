// SPDX-License-Identifier: Apache-2.0
#include "kernel/user_stacks.h"

#include <algorithm>
#include <cstring>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock_ns.h"
#include "target/side_work.h"

namespace clew::kernel {
namespace {

using abi::MachineUnwindSegment;
using target::AddressSpace;
using target::CodeFile;
using target::CodeRange;

constexpr size_t kAskedBytes = size_t{1} << 16;
constexpr size_t kRowsMin = size_t{1} << 21;  // 16 MiB; room for what is mapped later.
constexpr size_t kRowsMax = size_t{1} << 26;  // What is addressable.
// For processes that are no targets: of the CPU's time, since others' work must not make stacks
// worse.
constexpr auto kStartMax = std::chrono::milliseconds(150);
constexpr uint64_t kLargeBytes = uint64_t{8} << 20;  // A file that takes long to read.
constexpr uint64_t kHugeBytes = uint64_t{64} << 20;  // One that may take seconds.
constexpr size_t kReadersMax = 2;
constexpr auto kTurnMax = std::chrono::milliseconds(20);  // Of one update().
constexpr auto kSilence = std::chrono::seconds(1);

std::chrono::nanoseconds cpu_time() {
  return std::chrono::nanoseconds(clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

}  // namespace

Expected<std::unique_ptr<UserStacks>> UserStacks::make(const Options& options) {
  auto stacks = std::make_unique<UserStacks>(options);
  // From here on notices are kept, so that nothing is missed between the look and the first read.
  CLEW_TRY(stacks->open_sources());
  for (const pid_t pid : options.targets) {
    stacks->followed_.insert(pid);
    stacks->read_files_of(pid);
  }
  if (options.wants_all) stacks->read_running();
  CLEW_TRY(stacks->make_tables());
  return stacks;
}

Expected<void> UserStacks::open_sources() {
  if (options_.memory) return {};
  asked_.emplace(CLEW_TRY(Ring::make(kAskedBytes)));
  poll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  more_ = FileDescriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  std::vector<int> sources = {asked_->map().get(), more_.get()};
  auto notices = ProcessNotices::open(ProcessNotices::Wanted::All);
  if (notices) {  // Else stacks are right a little later.
    notices_.emplace(std::move(*notices));
    const std::vector<int> more = notices_->descriptors();
    sources.insert(sources.end(), more.begin(), more.end());
  }
  for (const int source : sources) {
    epoll_event event{};
    event.events = EPOLLIN;
    (void)epoll_ctl(poll_.get(), EPOLL_CTL_ADD, source, &event);
  }
  return {};
}

void UserStacks::read_file(const CodeFile& file) {
  if (waiting_.find(&file) != waiting_.end()) return;
  auto rows = target::read_unwind_rows(file.open_path);
  waiting_[&file] = rows ? std::move(*rows) : target::UnwindRows();
}

void UserStacks::read_files_of(pid_t pid) {
  const auto space = options_.spaces->look_at(pid);
  if (!space) return;
  for (const CodeRange& range : (*space)->ranges) {
    if (range.file != nullptr) read_file(*range.file);
  }
}

// Most processes share most files. Small files come first, so that what takes too long now is the
// fewest processes'; theirs are read when they ask.
void UserStacks::read_running() {
  const auto end = cpu_time() + kStartMax;
  const auto processes = target::list_processes();
  if (!processes) return;
  std::set<const CodeFile*> files;
  for (const target::Process& process : *processes) {
    const auto space = options_.spaces->look_at(process.pid());
    if (!space) continue;
    for (const CodeRange& range : (*space)->ranges) {
      if (range.file != nullptr) files.insert(range.file);
    }
    if (cpu_time() > end) break;
  }
  std::vector<const CodeFile*> by_size(files.begin(), files.end());
  std::sort(by_size.begin(), by_size.end(),
            [](const CodeFile* a, const CodeFile* b) { return a->size_bytes < b->size_bytes; });
  for (const CodeFile* file : by_size) {
    if (cpu_time() > end || file->size_bytes >= kHugeBytes) return;
    read_file(*file);
  }
}

Expected<void> UserStacks::make_tables() {
  size_t rows = 0;
  for (const auto& [file, read] : waiting_)
    rows += read.rows.size();
  rows_max_ = std::clamp(2 * rows, kRowsMin, std::max(rows, kRowsMax));
  if (options_.memory) {
    const size_t size_bytes = UnwindTables::size_bytes(rows_max_);
    tables_.emplace(UnwindTables::make(rows_max_, CLEW_TRY(options_.memory(size_bytes))));
  } else {
    tables_.emplace(CLEW_TRY(UnwindTables::make(rows_max_)));
  }
  const std::vector<pid_t> living = options_.spaces->living();
  for (const pid_t pid : living) {
    if (is_read(pid)) put(pid);
  }
  return {};
}

bool UserStacks::is_read(pid_t pid) const {
  const AddressSpace* const space = options_.spaces->find(pid);
  return std::all_of(space->ranges.begin(), space->ranges.end(), [&](const CodeRange& range) {
    return range.file == nullptr || waiting_.find(range.file) != waiting_.end() ||
           places_.find(range.file) != places_.end();
  });
}

// Whether the process's files are read, or small. Begins to read a large one.
bool UserStacks::is_ready(pid_t pid) {
  bool is_ready = true;
  for (const CodeRange& range : options_.spaces->find(pid)->ranges) {
    const CodeFile* const file = range.file;
    const bool is_known = file == nullptr || file->size_bytes < kLargeBytes ||
                          waiting_.find(file) != waiting_.end() ||
                          places_.find(file) != places_.end();
    if (is_known) continue;
    is_ready = false;
    if (reading_.find(file) != reading_.end() || reading_.size() >= kReadersMax) continue;
    reading_[file] = target::start_beside([this, path = file->open_path] {
      auto rows = target::read_unwind_rows(path, &is_over_);
      tell_more();
      return rows;
    });
  }
  return is_ready;
}

// What threads have read; who waited for it is put now.
void UserStacks::take_large_files(std::set<pid_t>& changed) {
  for (auto reading = reading_.begin(); reading != reading_.end();) {
    if (reading->second.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      ++reading;
      continue;
    }
    auto rows = reading->second.get();
    waiting_[reading->first] = rows ? std::move(*rows) : target::UnwindRows();
    reading = reading_.erase(reading);
  }
  changed.insert(delayed_.begin(), delayed_.end());
  delayed_.clear();
}

void UserStacks::add_symbols(Symbols& symbols) const {
  tables_->add_symbols(symbols);
  symbols["d_unwind_asked"] = {Symbol::Kind::Map, static_cast<uint32_t>(asked_->map().get())};
}

UnwindTables::Place UserStacks::place_of(const CodeFile& file) {
  const auto known = places_.find(&file);
  if (known != places_.end()) return known->second;
  const auto waiting = waiting_.find(&file);
  UnwindTables::Place place;
  if (waiting != waiting_.end()) {
    place = tables_->add(waiting->second);
    waiting_.erase(waiting);
  } else if (const auto rows = target::read_unwind_rows(file.open_path)) {
    place = tables_->add(*rows);
  }
  places_[&file] = place;
  return place;
}

void UserStacks::add_file(const CodeRange& range, const MachineUnwindSegment& segment) {
  if (range.file->inode == 0) return;  // The vDSO.
  abi::MachineUnwindFile file{};
  file.inode = range.file->inode;
  file.device = uint64_t{range.file->device_major} << 20 | range.file->device_minor;  // MKDEV
  file.delta = segment.origin - (range.begin - range.file_offset);
  file.first_row = segment.first_row;
  file.row_count = segment.row_count;
  tables_->add(file);
}

void UserStacks::put(pid_t pid) {
  const AddressSpace* const space = options_.spaces->find(pid);
  if (space == nullptr) return;
  if (!is_ready(pid)) {
    delayed_.insert(pid);
    return;
  }
  std::vector<MachineUnwindSegment> segments;
  segments.reserve(space->ranges.size());
  for (const CodeRange& range : space->ranges) {
    MachineUnwindSegment segment{};
    segment.begin = range.begin;
    segment.end = range.end;
    if (range.file != nullptr) {
      const UnwindTables::Place place = place_of(*range.file);
      segment.origin = range.load_bias + place.base;
      segment.first_row = place.first;
      segment.row_count = place.count;
      add_file(range, segment);
    }
    segments.push_back(segment);
  }
  const uint64_t program = space->program == nullptr ? 0 : space->program->inode;
  const bool is_new = tables_->put(static_cast<uint64_t>(pid), program, segments);
  if (!is_new) silenced_.insert(pid);
}

bool UserStacks::follows(pid_t pid) const {
  return options_.wants_all || followed_.find(pid) != followed_.end();
}

void UserStacks::apply(const ProcessNotice& notice, std::set<pid_t>& changed) {
  target::AddressSpaces& spaces = *options_.spaces;
  const bool is_child = notice.kind == ProcessNotice::Kind::Fork;
  if (!follows(is_child ? notice.parent : notice.pid)) return;
  switch (notice.kind) {
    case ProcessNotice::Kind::Fork:
      if (!options_.wants_all) followed_.insert(notice.pid);
      spaces.fork(notice.parent, notice.pid);
      break;
    case ProcessNotice::Kind::Exec:
      spaces.exec(notice.pid);
      (void)spaces.look_at(notice.pid);
      break;
    case ProcessNotice::Kind::Map:
      spaces.map(notice.pid, notice.mapping);
      break;
    case ProcessNotice::Kind::End:
      // What ran once may run again: its files shall be known then.
      if (changed.find(notice.pid) != changed.end()) put(notice.pid);
      spaces.end(notice.pid);
      tables_->remove(static_cast<uint64_t>(notice.pid));
      changed.erase(notice.pid);
      delayed_.erase(notice.pid);
      return;
  }
  changed.insert(notice.pid);
}

void UserStacks::answer_questions(std::set<pid_t>& changed) {
  asked_->read([&](std::span<const uint8_t> record) {
    uint64_t pid = 0;
    if (record.size() < sizeof pid) return;
    std::memcpy(&pid, record.data(), sizeof pid);
    const auto asking = static_cast<pid_t>(pid);
    if (!options_.wants_all) followed_.insert(asking);
    if (options_.spaces->look_at(asking)) changed.insert(asking);
  });
}

void UserStacks::add_target(pid_t pid) {
  followed_.insert(pid);
  read_files_of(pid);
  put(pid);
}

void UserStacks::look_at(pid_t pid) {
  if (options_.spaces->look_at(pid)) put(pid);
}

void UserStacks::tell_more() const {
  (void)eventfd_write(more_.get(), 1);
}

// Records wait for nobody: what takes longer is left for the next time.
void UserStacks::put_all(const std::set<pid_t>& changed) {
  const auto end = cpu_time() + kTurnMax;
  for (const pid_t pid : changed) {
    if (cpu_time() < end) {
      put(pid);
    } else {
      delayed_.insert(pid);
      tell_more();
    }
  }
}

void UserStacks::update() {
  eventfd_t told = 0;
  (void)eventfd_read(more_.get(), &told);
  std::set<pid_t> changed;
  bool is_lossy = false;
  if (notices_) {
    for (const ProcessNotice& notice : notices_->read(is_lossy))
      apply(notice, changed);
  }
  if (asked_) answer_questions(changed);
  if (is_lossy) {
    for (const pid_t pid : options_.spaces->living()) {
      if (options_.spaces->look_at(pid)) changed.insert(pid);
    }
  }
  take_large_files(changed);
  put_all(changed);
  if (Clock::now() - silenced_since_ < kSilence) return;
  silenced_since_ = Clock::now();
  for (const pid_t pid : silenced_)
    tables_->allow_questions(static_cast<uint64_t>(pid));
  silenced_.clear();
}

}  // namespace clew::kernel
