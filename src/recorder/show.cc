// SPDX-License-Identifier: Apache-2.0
#include "recorder/show.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "recorder/source_text.h"
#include "recorder/walk.h"
#include "target/types.h"

namespace clew::recorder {

namespace {

// A module of the snap, made anew.
struct ReadModule {
  const SnapModule* described = nullptr;
  std::unique_ptr<target::ModuleImage> image;
  std::unique_ptr<RecordedModule> recorded;  // Null, and so the next one: runs as it is.
  std::unique_ptr<ModulePaths> paths;
  std::optional<target::DebugInfo> debug;

  [[nodiscard]] bool has_id(uint32_t word) const {
    if (!abi::is_dag_record(word)) return false;
    return abi::dag_id(word) - described->recipe.first_id < described->id_count;
  }
  // Of a program counter in the copy: the instruction of the file.
  [[nodiscard]] std::optional<uint64_t> recorded_at(uint64_t pc) const {
    return recorded == nullptr ? std::nullopt : recorded->copy().copy().original_of(pc);
  }
  // Of one in the module's own code.
  [[nodiscard]] std::optional<uint64_t> original_at(uint64_t pc) const {
    const uint64_t address = pc - described->load_bias;
    for (const target::Section& section : image->sections()) {
      if (section.executable && section.contains(address)) return address;
    }
    return std::nullopt;
  }
};

Expected<void> make_anew(ReadModule& module) {
  const SnapModule& described = *module.described;
  module.recorded = CLEW_TRY(RecordedModule::make(*module.image, described.recipe));
  copy::CheckedCopy& copy = module.recorded->copy();
  if (module.recorded->digest() != described.digest ||
      module.recorded->tiling().dag_count != described.id_count) {
    return fail(
        ErrorCode::Refused,
        fmt::format("{} is not as it was recorded: another file, or another Clew", described.path));
  }
  CLEW_TRY(copy.move_to(described.load_bias, described.copy_address - copy.copy().address));
  module.paths =
      std::make_unique<ModulePaths>(module.recorded->facts(), module.recorded->proof(),
                                    module.recorded->copied(), module.recorded->tiling());
  return {};
}

Expected<ReadModule> read_module(const SnapModule& described) {
  ReadModule module;
  module.described = &described;
  module.image =
      std::make_unique<target::ModuleImage>(CLEW_TRY(target::ModuleImage::read(described.path)));
  if (module.image->build_id() != described.build_id) {
    return fail(ErrorCode::Refused, fmt::format("{} is another file now", described.path));
  }
  if (described.id_count != 0) CLEW_TRY(make_anew(module));
  if (auto debug = target::DebugInfo::open(*module.image)) module.debug.emplace(std::move(*debug));
  return module;
}

// The ring's words, oldest first, to the newest. Where that is not known it stands in front of a
// zero.
std::vector<uint32_t> unroll(const std::vector<uint32_t>& ring, std::optional<size_t> newest) {
  const auto zero = std::find(ring.begin(), ring.end(), 0U);
  if (!newest && zero == ring.end()) newest = ring.size() - 1;
  const auto from =
      newest ? ring.begin() + static_cast<ptrdiff_t>(*newest) + 1 : zero;  // The oldest one.
  std::vector<uint32_t> words(from, ring.end());
  words.insert(words.end(), ring.begin(), from);
  std::erase(words, 0U);
  return words;
}

// Of a position in the lobe; nothing when it is in none.
std::optional<size_t> index_of(const SnapLobe& lobe, uint64_t cursor) {
  const uint64_t offset = cursor - lobe.address;
  if (offset >= abi::kLobeBytes || offset % abi::kRecordBytes != 0) return std::nullopt;
  return offset / abi::kRecordBytes;
}

// Of a thread that is in a carrier. A handler that has run since has left more in the lobe than r11
// knows of, and the cursor in memory; when the carrier has written again, its zero says so.
std::optional<size_t> newest_of_carrier(const SnapLobe& lobe, uint64_t r11) {
  const auto own = index_of(lobe, r11);
  const auto told = index_of(lobe, lobe.cursor);
  if (!own || !told) return own ? own : told;
  const size_t count = lobe.words.size();
  const bool is_told_older = (*own + count - *told) % count < count / 2;
  return is_told_older || lobe.words[(*own + 1) % count] == 0 ? own : told;
}

class ThreadShower {
 public:
  ThreadShower(std::vector<ReadModule>& modules, const Snap& snap, size_t last)
      : modules_(modules), snap_(snap), last_(last) {}

  ShownThread run(const SnapThread& thread) {
    result_.thread = thread.thread;
    result_.is_reason = thread.thread == snap_.reason.thread && snap_.reason.signal != 0;
    const auto lobe = std::find_if(snap_.lobes.begin(), snap_.lobes.end(),
                                   [&](const SnapLobe& one) { return one.slot == thread.slot; });
    const uint64_t pc = thread.registers.rip;
    if (lobe != snap_.lobes.end()) {
      const auto newest = is_in_carrier(pc) ? newest_of_carrier(*lobe, thread.registers.r11)
                                            : index_of(*lobe, lobe->cursor);
      show_words(unroll(lobe->words, newest), thread);
    }
    if (!result_.is_recorded) result_.stopped = place_of(pc);
    const auto call = static_cast<int64_t>(thread.registers.orig_rax);
    if (call >= 0 && !result_.is_reason) result_.system_call = static_cast<uint64_t>(call);
    if (result_.lines.size() > last_) {
      result_.lines.erase(result_.lines.begin(),
                          result_.lines.end() - static_cast<std::ptrdiff_t>(last_));
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool is_in_carrier(uint64_t pc) const {
    return std::any_of(modules_.begin(), modules_.end(), [pc](const ReadModule& module) {
      return module.recorded != nullptr && module.recorded->has_cursor_in_r11(pc);
    });
  }

  // Stretches of one module each; only the last one is sure to end where the thread stopped.
  void show_words(const std::vector<uint32_t>& words, const SnapThread& thread) {
    for (size_t i = 0; i < words.size();) {
      ReadModule* const module = module_of(words[i]);
      size_t end = i + 1;
      while (end < words.size() && module_of(words[end]) == module)
        ++end;
      if (module != nullptr) {
        const auto stretch = std::span(words).subspan(i, end - i);
        show_stretch(*module, stretch,
                     end == words.size() ? stop_of(*module, thread) : std::nullopt);
      }
      i = end;
    }
  }

  // Where the thread is, or the call that it has not come back from.
  std::optional<uint64_t> stop_of(const ReadModule& module, const SnapThread& thread) {
    const auto stop = module.recorded_at(thread.registers.rip);
    is_in_call_ = !stop && thread.called_from != 0;
    return is_in_call_ ? module.recorded_at(thread.called_from - 1) : stop;
  }

  ReadModule* module_of(uint32_t word) {
    for (ReadModule& module : modules_) {
      if (module.has_id(word)) return &module;
    }
    return nullptr;
  }

  ShownLine place_of(uint64_t pc) {
    for (ReadModule& module : modules_) {
      const auto recorded = module.recorded_at(pc);
      const auto address = recorded ? recorded : module.original_at(pc);
      if (!address) continue;
      ShownLine line = line_of(module, *address);
      if (recorded) line.marks = kUncertain;
      return line;
    }
    ShownLine nowhere;
    nowhere.function = fmt::format("{:#x}", pc);
    nowhere.address = pc;
    return nowhere;
  }

  void show_stretch(ReadModule& module, std::span<const uint32_t> words,
                    std::optional<uint64_t> stopped_at) {
    const Walk steps = walk(
        *module.paths,
        {.words = words, .first_id = module.described->recipe.first_id, .stopped_at = stopped_at});
    result_.records += steps.records;
    result_.violations += steps.violations;
    result_.uncertain += steps.uncertain;
    result_.gaps += steps.gaps;
    for (size_t i = first_shown(module, steps.steps); i < steps.steps.size(); ++i) {
      const bool is_last = i + 1 == steps.steps.size() && steps.end == PathEnd::Stopped;
      show_step(module, steps.steps[i], is_last ? stopped_at : std::nullopt);
    }
    // Else its last records were lost, as those of what a signal's handler interrupts.
    result_.is_recorded = steps.end == PathEnd::Stopped && !is_in_call_;
    if (result_.is_recorded) result_.stopped = result_.lines.back();
  }

  // What stands in front of the last lines is not looked up. From one step to the next, another
  // line begins where their first instructions have different ones; within a step there may be
  // more.
  size_t first_shown(ReadModule& module, const std::vector<Step>& steps) {
    size_t lines = 0;
    size_t first = steps.size();
    for (std::optional<ShownLine> next; first > 0 && lines <= last_; --first) {
      const Step& step = steps[first - 1];
      ShownLine line = line_of(module, begin_of(module, step));
      line.depth = step.depth;
      if (!next || !is_same_line(line, *next)) ++lines;
      next = std::move(line);
    }
    return first;
  }

  static uint64_t begin_of(const ReadModule& module, const Step& step) {
    const copy::Proved& proved = module.recorded->proof().proved[step.function];
    return proved.blocks.blocks()[step.block].begin;
  }

  static bool is_same_line(const ShownLine& one, const ShownLine& other) {
    return one.function == other.function && one.file == other.file && one.line == other.line &&
           one.depth == other.depth;
  }

  // A block, up to the instruction at which the thread stopped.
  void show_step(ReadModule& module, const Step& step, std::optional<uint64_t> stopped_at) {
    const copy::Facts& facts = module.recorded->facts();
    const copy::Proved& proved = module.recorded->proof().proved[step.function];
    const code::Block& block = proved.blocks.blocks()[step.block];
    uint8_t marks = step.marks;
    for (auto at = facts.code.at(block.begin); at && at->address < block.end;
         at = facts.code.at(at->end())) {
      add(module, at->address, step.depth, std::exchange(marks, uint8_t{0}));
      if (stopped_at && at->address == *stopped_at) return;
    }
  }

  void add(ReadModule& module, uint64_t address, int32_t depth, uint8_t marks) {
    ShownLine line = line_of(module, address);
    line.depth = depth;
    line.marks = marks;
    if (!result_.lines.empty() && marks == 0 && is_same_line(result_.lines.back(), line)) return;
    result_.lines.push_back(std::move(line));
    if (result_.lines.size() > 2 * last_) {
      result_.lines.erase(result_.lines.begin(),
                          result_.lines.end() - static_cast<std::ptrdiff_t>(last_));
    }
  }

  ShownLine line_of(ReadModule& module, uint64_t address) {
    const auto known = lines_.find({&module, address});
    if (known != lines_.end()) return known->second;
    ShownLine line;
    line.module = std::string(file_of(module.described->path));
    line.address = address;
    const std::vector<target::SourceCall> calls =
        module.debug ? module.debug->calls_at(address) : std::vector<target::SourceCall>();
    if (!calls.empty()) {
      const target::SourceCall& call = call_of_line(calls);
      line.function = call.function;
      line.file = call.place.file;
      line.line = call.place.line;
      line.is_inlined = call.is_inlined;
    } else if (const target::Function* function = module.image->function_covering(address)) {
      line.function = std::string(function->name);
    } else {
      line.function = fmt::format("{}+{:#x}", line.module, address);
    }
    return lines_.emplace(std::pair(&module, address), line).first->second;
  }

  // An optimiser moves what a caller does, as to compute an argument, among the instructions of the
  // callee that it has inlined: the line is then that of the call, which is the caller's.
  static const target::SourceCall& call_of_line(const std::vector<target::SourceCall>& calls) {
    const target::SourceLine& place = calls.front().place;
    const auto caller =
        std::find_if(std::next(calls.begin()), calls.end(), [&](const target::SourceCall& call) {
          return call.place.file == place.file && call.place.line == place.line;
        });
    return caller == calls.end() ? calls.front() : *caller;
  }

  std::vector<ReadModule>& modules_;
  const Snap& snap_;
  size_t last_;
  std::map<std::pair<const ReadModule*, uint64_t>, ShownLine> lines_;
  ShownThread result_;
  bool is_in_call_ = false;  // Of a function that is not recorded.
};

// When the modules' files were written, by name.
std::map<std::string, int64_t> times_of(const Snap& snap) {
  constexpr int64_t kSecond = 1'000'000'000;
  std::map<std::string, int64_t> times;
  for (const SnapModule& module : snap.modules) {
    struct stat status {};
    if (stat(module.path.c_str(), &status) != 0) continue;
    times[std::string(file_of(module.path))] =
        status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec;
  }
  return times;
}

// A file that was written after the module may have other lines where the module's were.
void add_source_text(const Snap& snap, const std::vector<std::string>& folders, Shown& shown) {
  SourceText sources(folders);
  const auto times = times_of(snap);
  std::set<std::string> newer;
  const auto add = [&](ShownLine& line) {
    if (line.file.empty()) return;
    line.text = sources.line(line.file, line.line);
    const auto module = times.find(line.module);
    if (!line.text || module == times.end()) return;
    if (sources.written_at(line.file) <= module->second || !newer.insert(line.file).second) return;
    shown.problems.push_back(fmt::format("{} is newer than {}, so its lines may be others",
                                         file_of(line.file), line.module));
  };
  for (ShownThread& thread : shown.threads) {
    std::for_each(thread.lines.begin(), thread.lines.end(), add);
    add(thread.stopped);
  }
}

}  // namespace

Expected<Shown> show(const Snap& snap, const ShowOptions& options) {
  Shown shown;
  std::vector<ReadModule> modules;
  for (const SnapModule& described : snap.modules) {
    if (options.progress) options.progress(fmt::format("reading {}", file_of(described.path)));
    auto module = read_module(described);
    if (module) {
      modules.push_back(std::move(*module));
    } else {
      shown.problems.push_back(module.error().message);
    }
  }
  if (options.progress) options.progress("");
  for (const SnapThread& thread : snap.threads) {
    if (options.thread != 0 && thread.thread != options.thread) continue;
    shown.threads.push_back(ThreadShower(modules, snap, options.last).run(thread));
  }
  if (options.thread != 0 && shown.threads.empty()) {
    return fail(ErrorCode::NotFound, fmt::format("the snap has no thread {}", options.thread));
  }
  add_source_text(snap, options.source_folders, shown);
  return shown;
}

}  // namespace clew::recorder
