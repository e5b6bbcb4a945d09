// SPDX-License-Identifier: Apache-2.0
// Query: what a user asks, as one typed tree in one normal form, whatever the spelling was
// (comprehension, method chain, clause). query/parse.h makes it, query/print.h prints it in a form
// that reads back to an equal Query, src/plan lowers it to programs.
//
// The normal form, in the order in which an event passes it:
//
//     sources   where events come from; several are a union of streams
//     lets      named expressions, computed at most once per event
//     where     conjuncts; an event passes when all are non-zero
//     values    what the probe computes for the answer: the group key (Shape::Groups), or the
//               fields of the emitted event (Shape::Events)
//     aggregates  per group, updated in the probe with expressions over the event
//     columns   the answer's columns: expressions over Value(i) and Aggregate(i) only
//     having    conjuncts over Value(i) and Aggregate(i): rows that stay
//     order     sort keys over Value(i) and Aggregate(i); then take
//     window    the groups' windows of time
//     clustering  what becomes of all rows: which of a few kinds each is of
//     least_cause  which edges joins believe
//     including_open  calls of return sources that are open at the end are events, too
//
// Everything above the line `columns` is about one event. The normaliser has moved floating-point
// arithmetic and formatting (hex) out of values and into columns; where they stand in `where`, the
// plan decides. Everything from `columns` on is about rows and runs in the tracer.
//
// Types are explicit: operands of an arithmetic or comparing Binary have equal kind, width and sign
// after C's promotions, and every change of width, sign or kind is a Convert node. A Query owns all
// it refers to, has no pointers into the text, and is a plain value: copy it, compare it, send it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/aggregate.h"
#include "causal/edge.h"
#include "query/operators.h"
#include "query/span.h"
#include "target/type_description.h"

namespace clew::query {

// --- types -------------------------------------------------------------------------------------

enum class TypeKind : uint8_t {
  Integer,  // 1, 2, 4 or 8 bytes, two's complement. Also bool (comparisons give a signed 4-byte
            // 0/1), characters, enumerations, and pointers (unsigned 8 bytes, Unit::Address).
  Float,    // 4 or 8 bytes, IEEE 754.
  String,   // At most capacity_bytes with its NUL; longer text is cut.
  Bytes,    // Exactly capacity_bytes.
  Symbol,   // A code address of 8 bytes, shown as module!function+offset.
  Stack,    // At most capacity_bytes / 8 code addresses, the innermost first.
};

// What an integer or float measures; only output looks at it. Kept by + - and by min, max, sum,
// avg.
enum class Unit : uint8_t { None, Nanoseconds, Timestamp, Address };

struct Type {
  TypeKind kind = TypeKind::Integer;
  uint8_t size_bytes = 8;  // Integer and Float; 8 for Symbol; 0 for the others.
  bool is_signed = true;   // Integer only; false for the others.
  Unit unit = Unit::None;
  uint16_t capacity_bytes = 0;  // String, Bytes and Stack.
  uint16_t enumeration = 0;     // Integer: 1 + index in Query::enumerations, 0 = none.

  bool operator==(const Type&) const = default;
};

// Sizes of text, with its NUL.
inline constexpr uint16_t kStringMinBytes = 2;
inline constexpr uint16_t kStringDefaultBytes = 64;        // str(p) of a query with groups
inline constexpr uint16_t kEventStringDefaultBytes = 256;  // and of one of single events.
inline constexpr uint16_t kStringMaxBytes = 4096;          // str(p, n), buf(p, n)
inline constexpr uint16_t kKeyStringMaxBytes = 256;        // As a key, and of constants.
inline constexpr uint32_t kArgumentsMax = 16;              // arg0..arg15: abi::Context has them
inline constexpr uint16_t kStackFramesDefault = 64;        // ustack
inline constexpr uint16_t kStackFramesMax = 200;           // ustack(n): two fit into a key.
// The index of xmm0 among the arguments; those up to xmm7 follow.
inline constexpr uint16_t kVectorArgument = kArgumentsMax;
inline constexpr uint16_t kVectorArgumentsMax = 8;

using Enumerator = target::TypeEnumerator;

struct Enumeration {
  std::string name;
  std::vector<Enumerator> enumerators;
  // Of flags, of which a number has several: the bits that each enumerator is about. Else none.
  std::vector<int64_t> masks{};
  bool operator==(const Enumeration&) const = default;
};

// What lies in memory, as debug information describes it: what print() shows. A tree of values.
struct Structure {
  enum class Kind : uint8_t {
    Number,   // Of `type`, which may have an enumeration, and be a Float.
    Text,     // An array of characters.
    Record,   // `members`
    Array,    // So many of members[0].
    Unknown,  // Of a type that cannot be shown, or too deep.
  };
  std::string name;  // Of a member; of the whole, its type's.
  Kind kind = Kind::Unknown;
  Type type{};
  uint64_t offset_bytes = 0;  // In the record that it is a member of.
  uint64_t size_bytes = 0;
  uint8_t bit_offset = 0;  // A bit-field, unless bit_size is 0: as in target::TypeMember.
  uint8_t bit_size = 0;
  uint64_t count = 0;  // Array
  std::vector<Structure> members{};

  bool operator==(const Structure&) const = default;
};

// --- expressions -------------------------------------------------------------------------------

// What an event exports. query/fields.h has the table: name, type, where it exists, what it means.
enum class Field : uint8_t {
  Time,  // Timestamp, ns of CLOCK_MONOTONIC.
  Pid,
  Tid,
  Cpu,
  Comm,      // The thread's name.
  ProcName,  // The file name by which its program was started (target::program_name).
  Host,
  Function,  // Plain demangled name, constant per site.
  Module,    // Constant per site.
  Probe,     // What the source was called, constant per source.
  Caller,    // Symbol: the return address of the traced function.
  Stack,     // The stack of the side where the event is: of the kernel's sources kstack.
  UserStack,
  KernelStack,
  Argument,       // arg(index): the raw 8 bytes, signed. Entry, offset and line sources.
  ReturnValue,    // retval: the raw 8 bytes, signed. Return sources.
  Elapsed,        // ns since the entry of the same call. Return and exception sources.
  EntryArgument,  // entry.arg(index): the argument as it was at entry. Return and exception.
  NodeName,       // The machine's name as the process sees it: its container's.
  // To whom its process belongs (answer::Owner).
  Container,
  Unit,
  ControlGroup,
  User,
  Uid,
};

// Whether it is one of those that the tracer makes of the process's control group, or its user id.
constexpr bool is_of_owner(Field field) {
  return field == Field::Container || field == Field::Unit || field == Field::ControlGroup ||
         field == Field::User || field == Field::Uid;
}

enum class Function : uint8_t {
  Log2,  // (integer) floor(log2(x)) of the unsigned value; 0 for 0. int32.
  Min,   // (a, b) of one type.
  Max,
  Abs,            // (integer or float), same type.
  Hash,           // (integer or string) uint64.
  Len,            // (string) uint32: bytes before the NUL.
  Substr,         // (string, first, count) constants: a string. Beyond the end: "".
  Before,         // (string, string constant): what is in front of the first such, or all.
  Contains,       // (string, string constant) int32.
  StartsWith,     // (string, string constant) int32.
  Like,           // (string, pattern constant): % is any run, _ any one byte, \ escapes. int32.
  Sample,         // (n constant >= 1): 1 for one in n evaluations of this thread, else 0. int32.
  Hex,            // (integer) string "0x…", (bytes) their digits; in columns only.
  Cut,            // (bytes, integer) so many of the bytes.
  WideText,       // (bytes) string: UTF-16 or UTF-32, by Expression::index, as UTF-8.
  Address,        // (integer or bytes) string: an address of IP, as it lies in memory.
  SocketAddress,  // (bytes of struct sockaddr, string of sun_path) string: "10.0.0.1:443"
  Print,          // (bytes) what Query::structures[index] says they are; in columns only.
  IsNothing,  // (any): 1 where a left join found nothing to compute it from. int32. Behind joins.
  Extension,  // (integers): a function of an extension, whose name is Expression::text.
};

enum class ExpressionKind : uint8_t {
  Integer,      // `integer` holds the value, sign- or zero-extended from the type's width.
  Float,        // `real`
  String,       // `text`; type.capacity_bytes = size + 1
  Field,        // `field`, `index` for arguments, `stream`
  Input,        // `index` in Source::inputs: the expression differs from source to source
  Let,          // `index` in Query::lets
  Value,        // `index` in Query::values      (columns, having, order)
  Aggregate,    // `index` in Query::aggregates  (columns, having, order)
  JoinColumn,   // `index` in the columns of the subquery of join `stream` - 1
  Unary,        // `unary`, operands[0]
  Binary,       // `binary`, operands[0..1]
  Conditional,  // operands[0] ? operands[1] : operands[2]; 1 and 2 have the result's type
  Convert,      // operands[0] to `type`: C's conversion between Integer and Float types
  Load,         // type.size_bytes bytes at address operands[0] (uint64), checked
  ReadString,   // NUL-terminated text at address operands[0], cut to type.capacity_bytes, checked;
                // operands[1]: of so many bytes at most
  ReadBytes,    // type.capacity_bytes bytes at address operands[0], checked; operands[1]: so many,
                // and what is behind them means nothing. `index` 1: at the end of what can be read
                // are zeros instead
  Call,         // `function` of operands
  In,           // operands[0] equals one of operands[1..] (constants of its type); int32
};

struct Expression {
  ExpressionKind kind = ExpressionKind::Integer;
  Type type;
  Span span;  // In the text; not part of equality.

  int64_t integer = 0;
  double real = 0;
  std::string text;
  Field field = Field::Time;
  UnaryOperator unary = UnaryOperator::Negate;
  BinaryOperator binary = BinaryOperator::Add;
  Function function = Function::Log2;
  uint16_t index = 0;
  uint16_t stream = 0;  // 0 = the sources of `from`, 1.. = joins[stream - 1].
  std::vector<Expression> operands;

  bool operator==(const Expression& other) const;
};

// A chain of operands is at most this deep, so a recursive walk is safe.
inline constexpr unsigned kExpressionDepthMax = 200;

// --- sources -----------------------------------------------------------------------------------

enum class SourceKind : uint8_t {
  Entry,
  Return,
  Exception,  // A call that is left by an exception.
  Offset,     // function + offset_bytes
  Line,       // file:line
  Tick,       // Every period_ns, in the tracer.
  Begin,      // Once, when all probes are armed.
  End,        // Once, before they are taken away.
  Usdt,       // A static probe: function is "provider:name".
  // Of the kernel:
  Syscall,
  SyscallReturn,
  Kernel,  // A function of the kernel, of `module` where that is given.
  KernelReturn,
  Tracepoint,
  Profile,
  Recording,  // What a snap of the flight recorder, `file`, says that ran; nothing is traced.
};

// Those that fire in the kernel.
constexpr bool is_kernel_source(SourceKind kind) {
  return kind == SourceKind::Syscall || kind == SourceKind::SyscallReturn ||
         kind == SourceKind::Kernel || kind == SourceKind::KernelReturn ||
         kind == SourceKind::Tracepoint || kind == SourceKind::Profile;
}

// Those that fire in a traced process.
constexpr bool is_process_source(SourceKind kind) {
  return !is_kernel_source(kind) && kind != SourceKind::Tick && kind != SourceKind::Begin &&
         kind != SourceKind::End && kind != SourceKind::Recording;
}

constexpr bool is_kernel_function(SourceKind kind) {
  return kind == SourceKind::Kernel || kind == SourceKind::KernelReturn;
}

// The group of tracepoints that are asked for their arguments, as the code that fires them gives
// them, and not for a record: "rawtp:sched_switch".
inline constexpr std::string_view kRawGroup = "rawtp:";

// Those where a system call has moved bytes of a pipe or a socket, and returns, with the number of
// its argument that is the descriptor: "pipe:splice.2", "socket:recvfrom.0".
inline constexpr std::string_view kPipeGroup = "pipe:";
inline constexpr std::string_view kSocketGroup = "socket:";

// What events of a recording are; recording_fields.h has their names.
enum class RecordedKind : uint8_t { Block, Line, Call, Return, Exception, Signal };

enum class Scope : uint8_t { Session, Process, Machine, Cluster };

// All processes of a machine, or of each machine of a cluster.
constexpr bool is_everywhere(Scope scope) {
  return scope == Scope::Machine || scope == Scope::Cluster;
}

struct Source {
  SourceKind kind = SourceKind::Entry;
  Scope scope = Scope::Session;  // Session: the processes that the command names.
  std::string process;   // Scope::Process: name pattern, or a pid in digits; empty = Session's.
  std::string module;    // Pattern, empty = not given.
  std::string function;  // Pattern (* ? [..]), demangled; for Usdt, Syscall, … the name.
  std::string file;      // Line; Recording: the snap's.
  RecordedKind recorded = RecordedKind::Block;  // Recording
  uint32_t line = 0;
  uint64_t offset_bytes = 0;
  uint64_t period_ns = 0;  // Tick, Profile
  std::string label;       // What Field::Probe shows; a vocabulary name, or empty.
  bool may_miss = false;   // That it matches nothing is not told. No part of equality.
  // Nor is this: what is missed as it interrupts its own program is none of what is wanted.
  bool ignores_nested = false;
  std::vector<Expression> inputs;  // One per Query::inputs, of that input's type.
  Span span;

  bool operator==(const Source& other) const;

  [[nodiscard]] bool is_raw() const {
    return kind == SourceKind::Tracepoint && function.starts_with(kRawGroup);
  }
  [[nodiscard]] bool moves_bytes() const {
    return kind == SourceKind::Tracepoint &&
           (function.starts_with(kPipeGroup) || function.starts_with(kSocketGroup));
  }
};

// --- the query ---------------------------------------------------------------------------------

// An export that is computed differently in each source.
struct Input {
  std::string name;
  Type type;
  bool operator==(const Input&) const = default;
};

struct NamedExpression {
  std::string name;
  Expression expression;
  bool operator==(const NamedExpression&) const = default;
};

// Of the result's types: Count and Distinct int64, so that sum / count keeps its sign; Sum int64,
// uint64 or float64; Min, Max and Quantile that of the argument; Average, StandardDeviation and
// Variance float64. Quantize, Lquantize, Llquantize and TopK have no arithmetic.
using abi::AggregateFunction;

struct Aggregate {
  AggregateFunction function = AggregateFunction::Count;
  std::vector<Expression> arguments;  // None for Count, else one, over the event.
  // Lquantize: low, high, step. Llquantize: factor, low and high magnitude, steps. TopK: how many.
  std::vector<int64_t> parameters;
  double fraction = 0;  // Quantile
  Type type;            // Of the result; for histograms and TopK, of the values counted.
  Span span;

  bool operator==(const Aggregate& other) const;
};

struct OrderBy {
  Expression expression;
  bool descending = false;
  bool operator==(const OrderBy&) const = default;
};

enum class JoinFilter : uint8_t { All, First, FirstN, MostRecent, MostRecentN };

struct Query;

enum class JoinSide : uint8_t {
  Either,
  Before,  // The joined event is not later than the other,
  After,   // or not earlier.
};

// Of a join by time: events with equal keys whose times are at most so far apart. The keys stand in
// pairs of one type each, which is an integer or text.
struct Within {
  uint64_t ns = 0;
  JoinSide side = JoinSide::Either;
  std::vector<Expression> joined{};  // Over the joined event,
  std::vector<Expression> other{};   // and over the one of stream Join::after.
  // Of outstanding(…), the only join of its query: the joined event ends what the other one has
  // begun, whenever it happens. What is not ended is a row, in which the joined event's time is the
  // moment that the row is of.
  bool ends = false;
  // Of these, only what has one key of so many, by its hash, on both sides.
  uint64_t one_in = 1;
  bool operator==(const Within&) const = default;
};

// In a query over outstanding(…): `asked.time` is the moment that a row is of.
inline constexpr std::string_view kAskedName = "asked";

inline constexpr uint64_t kOneInMax = 1'000'000;

inline constexpr uint64_t kWithinMaxNs = 3'600'000'000'000;  // An hour.

// A join by cause (happened before), or by time.
struct Join {
  std::string name;
  bool left = false;
  JoinFilter filter = JoinFilter::All;
  uint32_t count = 1;  // FirstN, MostRecentN
  uint16_t after = 0;  // The stream whose event happens later; by time: that of the other keys.
  std::optional<Within> within{};
  std::vector<Source> sources;
  std::vector<Input> inputs;    // Of its sources, as Query::inputs.
  std::vector<Query> subquery;  // Instead of sources: at most one.
  Span span;

  bool operator==(const Join& other) const;
};

enum class Shape : uint8_t {
  Events,  // One row per event. `aggregates` is empty.
  Groups,  // One row per distinct `values`; with no values one row in all.
};

enum class WindowKind : uint8_t {
  Hopping,  // So long, and one begins each step; tumbling ones begin where one ends.
  Session,  // Of each key: from an event to the last one that another followed within `size_ns`.
};

// Groups are counted by windows of time, too. The probe's part of that is values[0], the number of
// the pane in which the event happened (query/window.h); what is counted of a window has the time
// at which it begins there. Of sessions, the first aggregates are min(e.time) and max(e.time).
struct TimeWindow {
  WindowKind kind = WindowKind::Hopping;
  uint64_t size_ns = 0;
  uint64_t step_ns = 0;  // Hopping
  uint64_t late_ns = 0;  // For so long after its end a window is given again if it has changed.
  bool operator==(const TimeWindow&) const = default;
};

// Rows are put together to vectors, which k-means clusters when all are there (stream/kmeans.h).
// Its own rows have the columns `by`, then what ClusterColumn names; what is shown of these is
// computed over Value(i) of them.
struct Clustering {
  uint32_t clusters = 1;
  std::vector<uint16_t> by;        // A vector has rows that are alike in these Query::columns,
  std::vector<std::string> names;  // which are called so here.
  uint16_t of = 0;                 // The column that says of which term,
  uint16_t value = 0;              // and the one that says how much.
  std::vector<NamedExpression> columns;
  std::vector<Expression> having;
  std::vector<OrderBy> order;
  std::optional<uint64_t> take;
  bool operator==(const Clustering&) const = default;
};

// Behind those of `by`.
enum class ClusterColumn : uint8_t { Cluster, Distance, Centre, Difference };
inline constexpr uint16_t kClusterColumns = 4;
inline constexpr uint32_t kClustersMax = 64;

struct Query {
  std::vector<Source> sources;
  std::vector<Input> inputs;
  std::vector<Join> joins;
  std::vector<NamedExpression> lets;  // lets[i] refers only to lets before i.
  std::vector<Expression> where;
  Shape shape = Shape::Events;
  std::vector<NamedExpression> values;
  std::vector<Aggregate> aggregates;
  std::vector<NamedExpression> columns;
  std::vector<Expression> having;
  std::vector<OrderBy> order;
  std::optional<uint64_t> take;          // Rows of an answer (of an interval, with every).
  std::optional<TimeWindow> window;      // Shape::Groups
  std::optional<Clustering> clustering;  // Shape::Groups
  std::optional<uint64_t> every_ns;      // A partial answer each interval. Not with a window.
  std::optional<uint64_t> for_ns;        // End of the session, from its start.
  std::optional<uint64_t> for_events;    // End after so many events have passed `where`.
  bool including_open = false;  // At the end, calls that have not returned are events, too.
  // Of joins: edges that are known less well are unknown. None: the query does not say.
  std::optional<causal::EdgeClass> least_cause;
  std::vector<Enumeration> enumerations;
  std::vector<Structure> structures;  // Of Function::Print.

  bool operator==(const Query&) const = default;
};

// The columns of the answer.
inline const std::vector<NamedExpression>& answered_columns(const Query& query) {
  return query.clustering ? query.clustering->columns : query.columns;
}

// A query has joins of one kind.
inline bool joins_by_time(const Query& query) {
  return !query.joins.empty() && query.joins[0].within.has_value();
}
// What was begun and not ended: outstanding(…).
inline bool is_outstanding(const Query& query) {
  return joins_by_time(query) && query.joins[0].within->ends;
}
inline bool joins_by_cause(const Query& query) {
  return !query.joins.empty() && !query.joins[0].within;
}

inline causal::EdgeClass least_cause(const Query& query) {
  return query.least_cause.value_or(causal::kLeastBelieved);
}

// Whether an Aggregate node occurs.
bool has_aggregate(const Expression& expression);

// `expression` for one source: Input nodes replaced by that source's own expressions.
Expression bind(const Expression& expression, const Source& source);

}  // namespace clew::query
