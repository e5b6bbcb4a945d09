// SPDX-License-Identifier: Apache-2.0
// The syntax tree: what was written, before names and types mean anything. The three spellings
// already share it: a query is its sources and a list of steps, and a step of a method chain
// carries the name of its lambda's parameter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "causal/edge.h"
#include "query/query.h"
#include "query/span.h"

namespace clew::query {

inline constexpr unsigned kNestingMax = 64;  // Parentheses, operators and calls in each other.
inline constexpr size_t kStepsMax = 256;     // Clauses or methods of a query.
inline constexpr size_t kSourcesMax = 64;    // Of one `from` or join.

// A type as a cast names it: words ("unsigned long", "struct client") and stars.
struct SyntaxType {
  std::string name{};
  uint8_t pointers = 0;
};

enum class SyntaxKind : uint8_t {
  Integer,    // integer, type
  Float,      // real
  String,     // text
  Duration,   // integer in ns
  Frequency,  // integer in ns per period
  Name,       // text
  Member,     // kids[0] . text
  Index,      // kids[0] [ kids[1] ]
  Call,       // kids[0] ( kids[1..] )
  Negate,     // - kids[0]
  Plus,
  Complement,
  Not,
  Dereference,
  AddressOf,
  Binary,       // binary, kids[0..1]
  Conditional,  // kids[0] ? kids[1] : kids[2]
  Cast,         // ( cast ) kids[0]
  In,           // kids[0] in ( kids[1..] )
  Like,         // kids[0] like kids[1]
  Lambda,       // names => kids[0]
  New,          // new { names[i] = kids[i] }; a name may be empty
};

struct SyntaxExpression {
  SyntaxKind kind = SyntaxKind::Integer;
  Span span{};
  Span name_span{};  // Of a Member's name.
  std::string text{};
  uint64_t integer = 0;
  double real = 0;
  Type type{};
  SyntaxType cast{};
  BinaryOperator binary = BinaryOperator::Add;
  std::vector<std::string> names{};
  std::vector<SyntaxExpression> kids{};
  unsigned depth = 1;
};

struct SyntaxItem {
  std::string name{};  // Empty when none was given.
  Span name_span{};
  SyntaxExpression expression{};
  bool descending = false;
};

struct SyntaxQuery;

// kmeans(5, query, by new { host, window }, of probe, value n); the query is the source's.
struct SyntaxClusters {
  uint64_t clusters = 1;
  Span clusters_span{};
  std::vector<SyntaxItem> by{};  // Names of columns, as all of these.
  SyntaxItem of{};
  SyntaxItem value{};
};

struct SyntaxOutstanding;

struct SyntaxSource {
  Scope scope = Scope::Session;
  std::vector<SyntaxExpression> scope_arguments{};  // process("redis*")
  std::string name{};    // Provider ("entry"), dotted tracepoint, or query name.
  bool is_call = false;  // name( arguments )
  std::vector<SyntaxExpression> arguments{};
  std::string event{};  // recording(…).line: which events; empty when that is not said.
  Span event_span{};
  std::string label{};                // as "label"
  std::vector<SyntaxItem> exports{};  // { name = expression }
  std::vector<SyntaxQuery> query;     // A query in parentheses: at most one, instead of a name.
  std::vector<SyntaxClusters> clusters{};      // What becomes of it: at most one.
  std::vector<SyntaxOutstanding> outstanding;  // At most one, instead of a name.
  uint64_t one_in = 0;                         // Of what is outstanding; 0 when it is not said.
  Span one_in_span{};
  Span span{};
  Span name_span{};
};

// Keys that are equal where a join by time joins two events. In a chain, each is a lambda, whose
// parameter is the item's name.
struct SyntaxEquals {
  SyntaxItem left{};
  SyntaxItem right{};
};

// outstanding(opened until closed on KEY equals KEY): keys over the bare names of either event.
struct SyntaxOutstanding {
  std::vector<SyntaxSource> opened{};
  std::vector<SyntaxSource> closed{};
  std::vector<SyntaxEquals> keys{};
  bool is_across = false;  // Across processes: a key is not of one process.
};

enum class StepKind : uint8_t {
  Where,      // items[0]
  Let,        // items[0] with its name
  Group,      // items[0] by items[1] into name
  GroupBy,    // items are keys
  Select,     // items
  OrderBy,    // items with directions
  Take,       // number
  Every,      // number in ns
  Window,     // window
  For,        // number in ns
  ForEvents,  // number
  IncludingOpen,
  Join,
  WithCause,  // least
  From,       // A second from.
  Distinct,
  Aggregate,  // A method that ends a chain: Count(p), Sum(f), …; text = its name
};

struct Step {
  StepKind kind = StepKind::Where;
  Span span{};
  std::string parameter{};  // Of the lambda in a chain; empty in clauses.
  std::string name{};
  Span name_span{};
  std::vector<SyntaxItem> items{};
  uint64_t number = 0;
  TimeWindow window{};
  causal::EdgeClass least = causal::kLeastBelieved;
  // Join and From:
  std::vector<SyntaxSource> sources{};
  JoinFilter filter = JoinFilter::All;
  bool left = false;
  std::string before{};
  Span before_span{};
  std::string after{};
  Span after_span{};
  // Of a join in a chain: which event of the row happens later, r => r.b; none: the row is one. Its
  // row is items[0], a lambda of `parameter` and `name`.
  std::vector<SyntaxItem> later{};
  // Of a join by time; none: by cause.
  std::vector<SyntaxEquals> equals{};
  uint64_t within_ns = 0;
  JoinSide side = JoinSide::Either;
};

struct SyntaxQuery {
  std::string name{};  // The event's name in `from`; empty for a chain.
  Span name_span{};
  std::vector<SyntaxSource> sources{};
  std::vector<Step> steps{};
  Span span{};
};

// var name = query;  or  name: query  or  var name = constant;
struct SyntaxDefinition {
  std::string name{};
  Span name_span{};
  std::vector<SyntaxQuery> query;              // One, or none:
  std::vector<SyntaxExpression> expression{};  // then one constant expression.
};

struct SyntaxText {
  std::vector<SyntaxDefinition> definitions{};
  SyntaxQuery query;  // The last one: the answer.
};

}  // namespace clew::query
