// SPDX-License-Identifier: Apache-2.0
// Expressions -> probe ISA. A Coder writes one program: it evaluates typed expressions of a query
// over the context of a hit into registers, frame and window.
//
// The machine is an accumulator: every expression leaves its value in r0, canonical (sign- or
// zero-extended to 64 bits by its type); a left operand waits in a frame word while a right operand
// that is not a leaf is computed. Frame words are constant window addresses, so native code reads
// and writes them in one instruction each. Fixed for the whole program:
//     r6 context · r7 payload of the entry's record (exits that use its arguments) · r8 elapsed,
//     when used · r9 cells; in the kernel r7 and r8 are those of load_of_kernel()
// The program at a landing of the unwinder is of another kind: see coder_unwind.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/query_window.h"
#include "abi/region.h"
#include "base/error.h"
#include "extension/extension.h"
#include "isa/builder.h"
#include "isa/inline_calls.h"
#include "query/query.h"

namespace clew::plan {

struct Contexts;

// What differs from site to site. Site constant i of a program is site_constants[i] of it.
enum class SiteConstant : uint8_t {
  GroupPointer,   // Window pointer to the dense cells of the site's group.
  RecordTag,      // Number of source and function << abi::kFunctionIdShift.
  FunctionIndex,  // Indices in the tracer's tables of names.
  ModuleIndex,
  ProbeIndex,
  SiteAddress,  // In the process.
};

// A function of an extension, as programs of this session call it.
struct LinkedFunction {
  const extension::Function* function = nullptr;
  isa::Body body;          // With the addresses of its state in the window.
  uint16_t extension = 0;  // Index of its state.
};

// Where the state of an extension is in the window.
struct LinkedState {
  const extension::Extension* owner = nullptr;
  uint32_t offset = 0;
  uint32_t ready_offset = 0;  // A word that is 1 once the initial words are there.
  std::span<const extension::InitialWord> initial_words;
};

// What a program may rely on beside the query.
struct CoderEnvironment {
  abi::RecordLayout records{};
  bool records_time = false;               // Payload word 0 is the time stamp at entry.
  std::vector<uint16_t> record_arguments;  // Then come these arguments, in this order.
  // Then, when there are exception sources, what the context does not say at a landing:
  bool records_source = false;  // Index of the source that the record is of.
  bool records_caller = false;  // Also with open calls, of which it tells that they are open.
  std::vector<SiteConstant> record_constants;
  bool records_registers = false;  // rbp and rbx, with which a stack is walked.
  uint64_t tick_multiplier = 0;    // Nanoseconds = ticks * multiplier >> shift.
  uint32_t tick_shift = 0;
  uint64_t base_ticks = 0;  // Time stamp counter at `base_ns` of CLOCK_MONOTONIC.
  uint64_t base_ns = 0;
  uint32_t samples_offset = 0;  // In the window: one word for each sample() call.
  std::map<std::string, LinkedFunction, std::less<>> functions;  // Of extensions, that it calls.
  std::vector<LinkedState> extension_states;
  uint32_t left_alone_offset = 0;    // In the window: counts hits of probes without fuel.
  abi::ContextLayout contexts{};     // Where JoinColumn has its values, and by bag
  const Contexts* packed = nullptr;  // where each is.
  bool for_kernel = false;  // Its verifier judges the program, which may call all accessors.

  // Offset in the window of what a JoinColumn stands for.
  [[nodiscard]] uint32_t packed_at(const query::Expression& column) const;
  // Offsets in the payload of a record.
  [[nodiscard]] int32_t argument_at(uint16_t argument) const;
  [[nodiscard]] int32_t source_at() const;
  [[nodiscard]] int32_t caller_at() const;
  [[nodiscard]] int32_t constant_at(SiteConstant constant) const;
  [[nodiscard]] int32_t registers_at() const;
  [[nodiscard]] uint32_t payload_words() const;
};

// True when a probe can compute it: integers and bounded text from the context, memory and state.
// Floating point, patterns, and names of threads and processes are for the tracer.
bool probe_can(const query::Expression& expression);
// True when a probe can store it, or words from which the tracer makes it: a process index for
// `pid` and `procName`, a thread id for `comm`, an index for `function`.
bool probe_can_store(const query::Expression& expression);
// Of a Stack: how many frames at most. An event or key has abi::stack_words() of it.
uint32_t frames_of(const query::Expression& expression);
// True when it is stored as one word, not as text or a stack.
bool is_stored_as_word(const query::Expression& expression);
// How many words `store` writes.
uint32_t stored_words(const query::Expression& expression);
// Whether it is a stack of some sources, and none of the others (plan/joined_events.h).
bool is_own_stack(const query::Expression& expression);
// True for text of which an event holds as much as there is: that may be long. And for such stacks.
bool has_own_length(const query::Expression& expression);
// What it is behind lets and inputs.
const query::Expression& meaning_of(const query::Query& query, const query::Source& source,
                                    const query::Expression& expression);
// How many sample() calls are in it.
uint32_t count_samples(const query::Expression& expression);

class Coder {
 public:
  // Borrows all three.
  Coder(const query::Query& query, const query::Source& source,
        const CoderEnvironment& environment);

  // First: r6 = context.
  void begin();
  // What an exit needs of its entry.
  struct RecordUse {
    bool elapsed = false;    // r8 = the time stamp at entry.
    bool arguments = false;  // r7 = the payload of the record.
  };
  // Takes this call's record; leaves when there is none.
  void take_record(const RecordUse& use);
  // Writes a record for this call; leaves when the table is full.
  void put_record();
  // r8 = nanoseconds since the entry. After take_record. `keep_time`: the time stamp is needed
  // again, as the time of the hit.
  Expected<void> measure_elapsed(bool keep_time);
  // r0 = the time stamp of the hit; [base + offset] holds it from now on.
  void stamp(isa::Register base, int32_t offset);
  // What is counted from here on has one time, if it has not yet: that of the pane and of all else.
  Expected<void> keep_time();

  // Frees this call's record, if there is one.
  void drop_record();
  // The same, and goes on either way.
  void forget_record();
  // Remembers that an unwinder's function begins here.
  void note_unwinder();
  // Frees the records of the calls that longjmp leaves.
  void drop_jumped();
  // Instead of begin(): the program at a landing of the unwinder.
  void begin_landing();
  // From here to end_part(): for records of calls of this exception source. r7 = the payload;
  // `elapsed`: r8 = the time stamp at entry.
  void begin_part(const query::Source& source, bool elapsed);
  void end_part();
  void end_landing();

  // Leaves the program, without counting a loss, unless `expression` is true.
  Expected<void> require(const query::Expression& expression);
  // Before the first call of one of these functions: their state begins as their files say; where
  // one may loop, hits of a probe whose threads have used up their fuel too often leave.
  void prepare_extensions(const std::set<std::string>& functions);
  // Placeholders of calls in a program for the kernel.
  [[nodiscard]] const std::vector<isa::Reference>& kernel_calls() const { return kernel_calls_; }

  // r0 = the value of an Integer or Symbol expression.
  Expected<void> value(const query::Expression& expression);
  // The value as stored_words(expression) words at [base + offset]; text is padded with zeros.
  // `base` is r9 or r10.
  Expected<void> store(const query::Expression& expression, isa::Register base, int32_t offset);
  // The same of a stack; r0 = a hash of it. Leaves when the stack cannot be walked. Changes r0 to
  // r5.
  void store_stack(const query::Expression& stack, isa::Register base, int32_t offset);
  // What it is at the program's source.
  [[nodiscard]] const query::Expression& meaning(const query::Expression& expression) const {
    return meaning_of(query_, *source_, expression);
  }
  // Text that has_own_length, for an event: at [r9 + offset] the size in bytes of what follows,
  // then the text in whole words. r0 = that size.
  Expected<void> store_sized_text(const query::Expression& expression, int32_t offset);
  // r0 = the word of an expression that is_stored_as_word.
  Expected<void> word(const query::Expression& expression);
  // r0 = hash of the value (aggregate/hash.h), for text of its words.
  Expected<void> hash_of(const query::Expression& expression);

  // A frame area, 8-aligned; its offset from r10. Limit when the frame is full.
  Expected<int32_t> reserve(uint32_t size_bytes);
  // Gives back what was reserved since frame_used() was `mark`; no let may be among it.
  [[nodiscard]] int32_t frame_used() const { return frame_used_; }
  void release(int32_t mark) { frame_used_ = mark; }
  // `into` = a constant of the site; at a landing, of the site of the call that is left.
  void load_site(isa::Register into, SiteConstant kind);
  // The index of a site constant in this program.
  uint32_t site_constant(SiteConstant kind);
  // Code that is seldom run: written behind the program's end.
  void out_of_line(std::function<void()> write);
  // Adds one to a counter of abi::RegionHeader.
  void count_loss(uint32_t header_offset);
  // One step of the hash of words: r0 = hash_step(r0, r2). Uses r3.
  void hash_step();

  // Ends the program.
  Expected<isa::Program> finish(std::string name);

  isa::Builder& builder() { return builder_; }
  [[nodiscard]] isa::Label exit_label() const { return exit_; }
  [[nodiscard]] const std::vector<SiteConstant>& site_constants() const { return site_constants_; }

 private:
  void walk_within(const query::Expression& stack, isa::Register base, int32_t offset);
  void walk_left(const query::Expression& stack, isa::Register base, int32_t offset);
  Expected<void> need_lets(const query::Expression& expression);
  Expected<void> integer(const query::Expression& expression);
  Expected<void> field(const query::Expression& expression);
  Expected<void> unary(const query::Expression& expression);
  Expected<void> binary(const query::Expression& expression);
  Expected<void> conditional(const query::Expression& expression);
  Expected<void> call(const query::Expression& expression);
  Expected<void> choose_extreme(const query::Expression& expression);
  Expected<void> extension_call(const query::Expression& expression);
  void initialise(const LinkedState& state);
  [[nodiscard]] Expected<isa::Program> with_functions(isa::Program program) const;
  Expected<void> truth(const query::Expression& expression);
  // Jumps to `target` when the truth of the expression is `when`.
  Expected<void> branch(const query::Expression& expression, bool when, isa::Label target);
  Expected<void> branch_logical(const query::Expression& expression, bool when, isa::Label target);
  Expected<void> branch_compare(const query::Expression& expression, bool when, isa::Label target);
  Expected<void> branch_text(const query::Expression& expression, bool when, isa::Label target);
  Expected<void> branch_in(const query::Expression& expression, bool when, isa::Label target);
  // r0 = r0 alu right: a register or a constant.
  template <typename Operand>
  void put(const query::Expression& binary, isa::Alu alu, Operand right);
  // r0 = left, r2 = right.
  Expected<void> operands(const query::Expression& left, const query::Expression& right);
  // Loads a constant or a field that is one load into `into`; false when it is neither.
  bool leaf(const query::Expression& expression, isa::Register into);
  // One of the words that are in no context but in the window.
  void load_owner(abi::QueryWord word, isa::Register into);
  // An argument that the caller passed on the stack, which may end before it.
  [[nodiscard]] bool is_above_frame(uint16_t argument) const;
  // r0 = such an argument. 8 bytes at base + offset may be written; jumps to `lost` when it cannot
  // be read. Uses r1 to r3.
  struct Scratch {
    isa::Register base = isa::Register::R10;
    int32_t offset = 0;
  };
  void load_above_frame(uint16_t argument, Scratch scratch, isa::Label lost);
  // r0 to the width and sign of `type`.
  void canonical(const query::Type& type);
  void monotonic_time();
  void scale_ticks();
  // r0 = the time stamp of the hit, when it was read already, or of now.
  void ticks();
  void sample(int64_t one_in);
  // r1 = key of this call, `place` + the result = window pointer to the first place where its
  // record can be.
  int32_t record_place(isa::Register place);
  void record_payload(int32_t offset);
  isa::Label without_record(int32_t offset);
  void record_origin(int32_t offset);
  void record_caller(int32_t offset);
  void drop_record(isa::Label done);
  void write_out_of_line();

  Expected<void> load(const query::Expression& expression);
  Expected<void> load_of_kernel(const query::Expression& expression, int32_t area);
  void jump_if_readable(int32_t size_bytes, isa::Label target);
  Expected<int32_t> text_in_frame(const query::Expression& expression);
  Expected<void> store_text(const query::Expression& expression, isa::Register base,
                            int32_t offset);
  Expected<void> choose_text(const query::Expression& expression, isa::Register base,
                             int32_t offset);
  Expected<void> read_memory(const query::Expression& expression, isa::Register base,
                             int32_t offset);
  // The same of text at the address in r0, without what is behind the text's last word.
  struct TextPlace {
    isa::Register base = isa::Register::R10;
    int32_t offset = 0;
    uint32_t capacity = 0;  // Bytes.
  };
  Expected<void> read_long_text(const TextPlace& to);
  void read_text(const TextPlace& to);
  // What has a length that is computed; of text, r0 = how long it is. Jumps nowhere else.
  Expected<void> read_counted(const query::Expression& read, isa::Register base, int32_t offset);
  // Bytes, and zeros from the first page on that cannot be read, unless that is the first.
  Expected<void> read_to_end(const TextPlace& to);
  // r0 = the bytes of whole words that the text in [r9 + offset] has.
  Expected<void> text_with_length(const query::Expression& expression, int32_t offset);
  Expected<void> choose_text_with_length(const query::Expression& expression, int32_t offset);
  // A comparison of text in the frame with a constant.
  struct TextTest {
    int32_t left = 0;       // Offset from r10.
    uint32_t capacity = 0;  // Bytes, whole words.
    std::string_view right;
    bool prefix = false;
    bool zero_padded = false;  // Behind the first zero byte are only zeros.
  };
  [[nodiscard]] query::Expression as_compared(const query::Expression& text, size_t bytes) const;
  // Jumps to `target` when the outcome is `when`.
  void test_text(const TextTest& test, bool when, isa::Label target);
  void compare_text(const TextTest& test, isa::Label differ);
  isa::Label unreadable();

  const query::Query& query_;
  const query::Source* source_;  // Never null.
  const CoderEnvironment& environment_;
  isa::Builder builder_;
  isa::Label exit_;  // Of the program, or of the part.
  struct Landing {
    isa::Label next_record;
    isa::Label next_part;
    isa::Label done;
  };
  std::optional<Landing> landing_;
  std::optional<isa::Label> unreadable_;
  std::vector<std::function<void()>> out_of_line_;
  std::map<uint16_t, int32_t> lets_;  // Let index -> offset from r10.
  // Where the time stamp of the hit is, once it has been read.
  struct TicksPlace {
    isa::Register base = isa::Register::R10;
    int32_t offset = 0;
  };
  std::optional<TicksPlace> ticks_;
  std::vector<SiteConstant> site_constants_;
  std::vector<isa::Reference> references_;  // Calls of functions of extensions.
  std::vector<isa::Reference> kernel_calls_;
  int32_t frame_used_ = 0;
  uint32_t samples_ = 0;
};

}  // namespace clew::plan
