// SPDX-License-Identifier: Apache-2.0
#include "engine/copied_functions.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "abi/arena.h"
#include "abi/stub.h"
#include "base/log.h"
#include "copy/asked_callers.h"
#include "copy/check.h"
#include "copy/module_copy.h"
#include "copy/prove_module.h"
#include "copy/unwind.h"
#include "engine/own_unwinder.h"
#include "engine/stack_maps.h"
#include "inline/answers.h"
#include "target/frame_tables.h"
#include "target/linked_names.h"

namespace clew::engine {
namespace {

// As the recorder leaves them: the loader calls itself in its own ways, the C library looks at who
// calls it, and the others unwind.
constexpr std::array<std::string_view, 5> kNotCopied = {"ld-linux", "libc.so", "libm.so",
                                                        "libgcc_s", "libstdc++.so"};

std::string_view file_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

void put_word(std::vector<uint8_t>& bytes, uint32_t word) {
  for (unsigned shift = 0; shift < 32; shift += 8)
    bytes.push_back(static_cast<uint8_t>(word >> shift));
}

void put_register(std::vector<uint8_t>& bytes, uint8_t opcode, unsigned number) {
  if (number >= 8) bytes.push_back(0x41);
  bytes.push_back(static_cast<uint8_t>(opcode + (number & 7)));
}

// add qword gs:[disp32], imm8: it neither writes registers nor looks at what a stub has saved.
bool is_addition(std::span<const uint8_t> bytes) {
  constexpr std::array<uint8_t, 5> kAddition = {0x65, 0x48, 0x83, 0x04, 0x25};
  return bytes.size() == kAddition.size() + 4 + 1 &&
         std::equal(kAddition.begin(), kAddition.end(), bytes.begin());
}

// The functions of a module that run on copies. Nothing in the process is changed.
struct CopyChoice {
  std::unique_ptr<copy::Facts> facts;
  std::vector<copy::Proved> proved;
  copy::Insertions insertions;
  std::map<uint64_t, uint32_t> points;              // By the function's address.
  std::map<uint64_t, std::vector<uint32_t>> exits;  // By the address of the ret or jump.
  std::map<uint32_t, native::Code> bodies;          // Of an exit, its first point's.
  CopiedReport report;
};

// A body in a copy with what stands around it.
struct CopiedProbe {
  std::vector<uint8_t> bytes;
  uint32_t body_offset = 0;
};

CopiedProbe copied_probe(const native::Code& code, uint32_t slot_address) {
  constexpr auto kR10 = static_cast<unsigned>(abi::Register::R10);
  std::vector<uint8_t> inner;
  const bool saves = !is_addition(code.bytes);
  if (saves) put_register(inner, 0x50, kR10);
  for (unsigned number = 0; number < 16; ++number) {
    if (number != kR10 && code.clobbers.has(static_cast<abi::Register>(number)))
      put_register(inner, 0x50, number);
  }
  const size_t body = inner.size();
  inner.insert(inner.end(), code.bytes.begin(), code.bytes.end());
  for (unsigned number = 16; number-- > 0;) {
    if (number != kR10 && code.clobbers.has(static_cast<abi::Register>(number)))
      put_register(inner, 0x58, number);
  }
  if (saves) put_register(inner, 0x58, kR10);
  CopiedProbe probe;
  probe.bytes = {0x83, 0x3c, 0x25};  // cmp dword [cookie + 4], 0
  put_word(probe.bytes, slot_address + abi::kCookieOffset + 4);
  probe.bytes.push_back(0);
  probe.bytes.push_back(0x74);  // je over
  probe.bytes.push_back(static_cast<uint8_t>(inner.size()));
  probe.body_offset = static_cast<uint32_t>(probe.bytes.size() + body);
  probe.bytes.insert(probe.bytes.end(), inner.begin(), inner.end());
  return probe;
}

// All executable bytes of the module, as the process has them.
class TextInProcess {
 public:
  TextInProcess(pid_t pid, const target::ProcessModule& module) : load_bias_(module.load_bias) {
    for (const target::Mapping& map : module.executable_ranges) {
      Part part = {map.start, std::vector<uint8_t>(map.size_bytes())};
      if (target::read_memory(pid, map.start, part.bytes)) parts_.push_back(std::move(part));
    }
  }
  [[nodiscard]] bool equals(uint64_t address, std::span<const uint8_t> bytes) const {
    const uint64_t at = address + load_bias_;
    return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
      const uint64_t offset = at - part.address;
      return offset < part.bytes.size() && bytes.size() <= part.bytes.size() - offset &&
             std::equal(bytes.begin(), bytes.end(),
                        part.bytes.begin() + static_cast<ptrdiff_t>(offset));
    });
  }

 private:
  struct Part {
    uint64_t address = 0;
    std::vector<uint8_t> bytes;
  };
  uint64_t load_bias_;
  std::vector<Part> parts_;
};

// In front of which the point is.
uint64_t probed_instruction(const code::Plan& plan, uint32_t point) {
  const code::Point& at = plan.points[point];
  const code::Window& window = plan.windows[at.window];
  return window.address + window.instructions[at.instruction].offset;
}

class Chooser {
 public:
  Chooser(pid_t pid, const CopyInput& input, const BodyRules& rules, CopyChoice& choice)
      : input_(input), rules_(rules), choice_(choice), text_(pid, input.module) {
    places_.assign(input.functions.begin(), input.functions.end());
    std::sort(places_.begin(), places_.end());
  }

  Expected<void> run() {
    list_wanted();
    asked_ = copy::asked_callers(*choice_.facts);
    copy::ModuleProof proof = copy::prove_module(*choice_.facts);
    for (const copy::NotCopied& refused : proof.refused) {
      if (wanted_.erase(address_of(refused.function)) != 0)
        leave(copy::name(refused.refusal.reason));
    }
    for (copy::Proved& proved : proof.proved) {
      const auto wanted = wanted_.find(address_of(proved.function));
      if (wanted == wanted_.end()) continue;
      const std::string_view reason = why_not(proved, wanted->second);
      if (!reason.empty()) {
        leave(reason);
        continue;
      }
      CLEW_TRY(take(std::move(proved), wanted->second));
    }
    choice_.report.copied = static_cast<uint32_t>(choice_.proved.size());
    return {};
  }

 private:
  [[nodiscard]] uint64_t address_of(uint32_t function) const {
    return choice_.facts->code.functions()[function].address;
  }
  void leave(std::string_view reason) { ++choice_.report.others[std::string(reason)]; }

  // The points of one function.
  struct Wanted {
    std::optional<uint32_t> entry;
    std::map<uint64_t, std::vector<uint32_t>> exits;  // By address. Ways to one ret have one each.
    bool is_simple = true;                            // Each is all that is wanted in its window.
  };

  void list_wanted() {
    const code::Plan& plan = *input_.points.plan;
    for (uint32_t index = 0; index < plan.points.size(); ++index) {
      const code::Point& point = plan.points[index];
      Wanted& wanted = wanted_[input_.functions[index]];
      if (plan.points_of(point.window).size() != 1 || point.keeps_flags) wanted.is_simple = false;
      add(wanted, index, point);
    }
    choice_.report.asked = static_cast<uint32_t>(wanted_.size());
    std::erase_if(wanted_, [this](const auto& one) {
      const Wanted& wanted = one.second;
      const bool is_known = wanted.is_simple && wanted.entry;
      if (!is_known) leave(wanted.is_simple ? "no-entry" : "window");
      return !is_known;
    });
  }

  void add(Wanted& wanted, uint32_t index, const code::Point& point) const {
    const code::Window& window = input_.points.plan->windows[point.window];
    switch (point.kind) {
      case code::PointKind::Entry:
        if (wanted.entry || window.window_class == code::WindowClass::BothWays)
          wanted.is_simple = false;
        wanted.entry = index;
        return;
      case code::PointKind::Exit:
        // A jump that is not taken goes on in the function.
        if (point.tail_call && point.side != code::Side::Before) wanted.is_simple = false;
        wanted.exits[point.address].push_back(index);
        return;
      case code::PointKind::Offset:
        wanted.is_simple = false;
        return;
    }
  }

  std::string_view why_not(const copy::Proved& proved, const Wanted& wanted) {
    const uint64_t start = address_of(proved.function);
    if (asked_.contains(start)) return copy::name(copy::Reason::AsksCaller);
    const auto entry = proved.blocks.block_at(start);
    const uint64_t probed = probed_instruction(*input_.points.plan, *wanted.entry);
    if (!entry || proved.blocks.block_at(probed) != entry) return "window";
    if (!std::all_of(wanted.exits.begin(), wanted.exits.end(),
                     [&](const auto& exit) { return proved.blocks.block_at(exit.first); }))
      return "window";
    for (const code::Block& block : proved.blocks.blocks()) {
      const auto bytes = choice_.facts->code.text_from(block.begin);
      const uint64_t size = block.end - block.begin;
      if (bytes.size() < size || !text_.equals(block.begin, bytes.first(size)))
        return "foreign-patch";
      // Each round would be a call.
      for (const code::Edge& edge : proved.blocks.edges_of(block)) {
        if (edge.block == *entry) return "loop-head";
      }
      const auto inside = std::upper_bound(places_.begin(), places_.end(), block.begin);
      const bool is_start = block.begin == start;
      const auto first =
          is_start ? inside : std::lower_bound(places_.begin(), places_.end(), block.begin);
      if (first != places_.end() && *first < block.end) return "nested";
    }
    return {};
  }

  // Nothing when it is no body that may stand in a copy.
  Expected<std::optional<native::Code>> translate(uint32_t point) const {
    const code::Point& at = input_.points.plan->points[point];
    native::Code code = CLEW_TRY(translate_point(input_.points.programs[point], at, rules_));
    const bool is_plain = code.calls.empty() && !code.guarded &&
                          !code.clobbers.has(abi::kSavedFlags) && code.bytes.size() < 64;
    if (!is_plain || bytes_of(code).size() > copy::kInsertionBytesMax)
      return std::optional<native::Code>();
    return std::optional(std::move(code));
  }

  [[nodiscard]] std::vector<uint8_t> bytes_of(const native::Code& code) const {
    return copied_probe(code, rules_.environment.slot_address).bytes;
  }

  Expected<void> take(copy::Proved proved, const Wanted& wanted) {
    std::map<uint32_t, native::Code> bodies;
    std::vector<uint32_t> points = {*wanted.entry};
    for (const auto& [address, its] : wanted.exits)
      points.push_back(its.front());
    for (const uint32_t point : points) {
      auto code = CLEW_TRY(translate(point));
      if (!code) {
        leave("probe");
        return {};
      }
      bodies.emplace(point, std::move(*code));
    }
    const uint64_t start = address_of(proved.function);
    choice_.insertions.entry.emplace(start, bytes_of(bodies.at(*wanted.entry)));
    choice_.points.emplace(start, *wanted.entry);
    for (const auto& [address, its] : wanted.exits) {
      choice_.insertions.before.emplace(address, bytes_of(bodies.at(its.front())));
      choice_.exits.emplace(address, its);
    }
    choice_.bodies.merge(bodies);
    choice_.proved.push_back(std::move(proved));
    return {};
  }

  const CopyInput& input_;
  const BodyRules& rules_;
  CopyChoice& choice_;
  TextInProcess text_;
  std::vector<uint64_t> places_;
  std::map<uint64_t, Wanted> wanted_;  // By the function's address.
  std::set<uint64_t> asked_;           // Whom others ask for the place that they were called from.
};

bool is_not_copied(std::string_view path) {
  return std::any_of(kNotCopied.begin(), kNotCopied.end(),
                     [&](std::string_view prefix) { return file_of(path).starts_with(prefix); });
}

// Behind the module, and moved from there anyway.
uint64_t place_behind(const target::ModuleImage& image) {
  constexpr uint64_t kPage = 4096;
  const uint64_t end = image.sections().empty() ? 0 : image.sections().back().end();
  return (end + kPage) / kPage * kPage;
}

Expected<CopyChoice> choose(pid_t pid, const CopyInput& input, const BodyRules& rules) {
  CopyChoice choice;
  choice.report.module = file_of(input.module.path);
  const auto none = [&](std::string_view reason) {
    choice.report.asked = static_cast<uint32_t>(input.functions.size());
    choice.report.others[std::string(reason)] = choice.report.asked;
    return std::move(choice);
  };
  if (is_not_copied(input.module.path)) return none("c-library");
  const auto names = CLEW_TRY(target::read_linked_names(input.module.open_path));
  if (!check_stack_maps(input.module, names)) return none("stack-maps");
  choice.facts = CLEW_TRY(copy::Facts::of(input.image));
  CLEW_TRY(Chooser(pid, input, rules, choice).run());
  return choice;
}

// A copy with the tables of its unwinder behind it.
struct Written {
  copy::CheckedCopy copy;
  copy::UnwindBytes unwind;
};

Expected<Written> write(const CopyInput& input, const CopyChoice& choice) {
  copy::ModuleCopy made = CLEW_TRY(
      copy::write_copy(*choice.facts, choice.proved, choice.insertions, place_behind(input.image)));
  copy::CheckedCopy checked =
      CLEW_TRY(copy::check(*choice.facts, choice.proved, choice.insertions, std::move(made)));
  const auto tables = CLEW_TRY(target::read_frame_tables(input.module.open_path));
  copy::UnwindBytes unwind = CLEW_TRY(copy::write_unwind(
      {tables, choice.insertions, checked.copy(), input.image.is_position_independent()}));
  return Written{std::move(checked), std::move(unwind)};
}

// The ways of one module's points into its copy, which is where it will be.
class Ways {
 public:
  Ways(const CopyInput& input, const CopyChoice& choice, const copy::ModuleCopy& copy,
       const BodyRules& rules)
      : input_(input), choice_(choice), copy_(copy), map_(copy), rules_(rules) {}

  Expected<std::vector<inline_::CopyWay>> find() const {
    std::vector<inline_::CopyWay> ways(input_.functions.size());
    for (const auto& [function, point] : choice_.points) {
      const auto entry = copy_.function_copy(function);
      const auto resume = map_.copy_of(probed_instruction(*input_.points.plan, point));
      if (!entry || !resume) return no_place();
      CLEW_TRY(check_probe(*entry, point));
      ways[point] = {
          .resume = *resume, .entry = *entry, .original = function + input_.module.load_bias};
    }
    for (const auto& [address, points] : choice_.exits) {
      const auto behind = map_.copy_of(address);
      const uint64_t size = choice_.insertions.before.at(address).size();
      if (!behind || *behind - copy_.address < size) return no_place();
      CLEW_TRY(check_probe(*behind - size, points.front()));
      for (const uint32_t point : points)
        ways[point] = {.resume = 0, .entry = *behind - size, .original = *behind};
    }
    return ways;
  }

 private:
  static tl::unexpected<Error> no_place() {
    return fail(ErrorCode::Limit, "a probe has no place in its copy");
  }

  // It is there, and its body may be.
  [[nodiscard]] Expected<void> check_probe(uint64_t address, uint32_t point) const {
    const native::Code& body = choice_.bodies.at(point);
    const CopiedProbe probe = copied_probe(body, rules_.environment.slot_address);
    const uint64_t offset = address - copy_.address;
    const bool is_there = offset <= copy_.code_size &&
                          probe.bytes.size() <= copy_.code_size - offset &&
                          std::equal(probe.bytes.begin(), probe.bytes.end(),
                                     copy_.bytes.begin() + static_cast<ptrdiff_t>(offset));
    if (!is_there) return no_place();
    return check_at(address + probe.body_offset, body, input_.points.programs[point],
                    input_.points.plan->points[point], rules_);
  }

  const CopyInput& input_;
  const CopyChoice& choice_;
  const copy::ModuleCopy& copy_;
  copy::CopyMap map_;
  const BodyRules& rules_;
};

Expected<std::vector<inline_::CopyWay>> install(inline_::Attachment& attachment,
                                                inline_::Answers& answers, const CopyInput& input,
                                                const CopyChoice& choice, const BodyRules& rules) {
  auto [checked, unwind] = CLEW_TRY(write(input, choice));
  const copy::ModuleCopy& made = checked.copy();
  const uint64_t behind = unwind.address - made.address;
  const std::vector<target::Mapping>& text = input.module.executable_ranges;
  const inline_::CopyRoom room = CLEW_TRY(attachment.take_copy_room(
      text.front().start, text.back().end,
      std::max<uint64_t>(behind + unwind.bytes.size(), made.bytes.size()), made.address % 64));
  const uint64_t shift = room.address - made.address;
  CLEW_TRY(checked.move_to(input.module.load_bias, shift));
  CLEW_TRY(unwind.move_to(input.module.load_bias, shift));
  auto ways = CLEW_TRY(Ways(input, choice, made, rules).find());
  std::vector<uint8_t> bytes = made.bytes;
  if (!unwind.bytes.empty()) {
    bytes.resize(behind);
    bytes.insert(bytes.end(), unwind.bytes.begin(), unwind.bytes.end());
    if (answers.hears(extent_of(input.module)))
      CLEW_TRY(answers.hear_also(attachment, {made.address, made.code_size}));
    CLEW_TRY(answers.add(attachment, {.begin = made.address,
                                      .size_bytes = made.code_size,
                                      .original = text.front().start,
                                      .header = unwind.address + unwind.header,
                                      .header_bytes = unwind.bytes.size() - unwind.header}));
  }
  CLEW_TRY(attachment.write_copies(room, bytes));
  return ways;
}

// Nothing when exceptions could not go through copies.
Expected<std::optional<inline_::Answers>> answer_unwinders(inline_::Attachment& attachment) {
  const auto modules = CLEW_TRY(target::read_modules(attachment.pid()));
  auto answers = inline_::Answers::install(attachment, modules);
  Expected<void> heard;
  for (const target::ProcessModule& module : modules) {
    if (!answers || !*answers || !heard) break;
    const auto names = target::read_linked_names(module.open_path);
    if (names && brings_unwinder(module, *names))
      heard = (*answers)->hear(attachment, modules, extent_of(module));
  }
  if (answers && heard) return answers;
  log_step(attachment.pid(), "no functions run on copies: {}",
           (answers ? heard.error() : answers.error()).message);
  return std::optional<inline_::Answers>();
}

void leave_all(CopiedReport& report, std::string_view reason) {
  report.others[std::string(reason)] += std::exchange(report.copied, 0U);
}

}  // namespace

std::string why_no_copies(const plan::Lowered& lowered, bool follows_forks) {
  if (follows_forks) return "[follow]";
  const bool has_others = std::any_of(
      lowered.programs.begin(), lowered.programs.end(), [](const plan::ProbeProgram& program) {
        const bool is_of_function =
            program.point == plan::ProgramPoint::Entry || program.point == plan::ProgramPoint::Exit;
        return !is_of_function || program.is_recorder;
      });
  return has_others ? "[not-functions]" : "";
}

Expected<std::vector<CopiedReport>> judge_copies(pid_t pid, std::span<const CopyInput> modules,
                                                 const BodyRules& rules) {
  std::vector<CopiedReport> reports;
  reports.reserve(modules.size());
  for (const CopyInput& input : modules) {
    CopyChoice choice = CLEW_TRY(choose(pid, input, rules));
    reports.push_back(std::move(choice.report));
  }
  return reports;
}

Expected<Copies> make_copies(inline_::Attachment& attachment, std::span<const CopyInput> modules,
                             const BodyRules& rules) {
  Copies copies;
  std::optional<inline_::Answers> answers;
  bool is_asked = false;
  for (const CopyInput& input : modules) {
    const StepTime time;
    copies.ways.emplace_back();
    CopyChoice choice = CLEW_TRY(choose(attachment.pid(), input, rules));
    CopiedReport& report = copies.reports.emplace_back(std::move(choice.report));
    if (report.copied == 0) continue;
    if (!std::exchange(is_asked, true)) answers = CLEW_TRY(answer_unwinders(attachment));
    if (!answers) {
      leave_all(report, "unwinding");
      continue;
    }
    auto ways = install(attachment, *answers, input, choice, rules);
    if (ways) copies.ways.back() = std::move(*ways);
    if (!ways) leave_all(report, ways.error().message);
    log_step(attachment.pid(), "{}: {} of {} functions have copies ({:.1f} ms)", input.module.path,
             report.copied, report.asked, time.ms());
  }
  return copies;
}

}  // namespace clew::engine
