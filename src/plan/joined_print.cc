// SPDX-License-Identifier: Apache-2.0
// A query with joins, as `explain` shows it.
#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plan/joined.h"
#include "plan/plan.h"
#include "query/print.h"

namespace clew::plan {

using query::Query;

namespace {

std::string_view name_of(query::Act act) {
  switch (act) {
    case query::Act::Begin:
      return "begins a request";
    case query::Act::End:
      return "ends the thread's part in its request";
    case query::Act::Put:
      return "hands the request over";
    case query::Act::Take:
      return "takes a request over";
    case query::Act::Fork:
      return "takes the request along";
    case query::Act::Join:
      return "joins what was handed over";
    case query::Act::Multiplex:
      return "has several requests at a time";
    case query::Act::Execute:
      return "runs another program";
    case query::Act::Exit:
      return "ends the thread";
    case query::Act::Connect:
      return "connects for the request";
    case query::Act::Send:
      return "hands the request over with its bytes";
    case query::Act::Receive:
      return "takes the request over that the bytes are of";
    case query::Act::Wait:
      return "ends what a thread does for the requests that it has read";
  }
  return "";
}

bool is_of_sockets(const query::Carrier& carrier) {
  using query::Act;
  const Act act = carrier.cause.act;
  return query::is_kernel_source(carrier.source.kind) &&
         (act == Act::Connect || act == Act::Send || act == Act::Receive || act == Act::Wait);
}

std::string_view bytes_of(query::Medium medium) {
  switch (medium) {
    case query::Medium::Tcp:
      return "";
    case query::Medium::Unix:
      return ", of UNIX sockets";
    case query::Medium::Pipe:
      return ", of pipes";
  }
  return "";
}

// With its class, which an end has none of: it is always believed. Whose bytes they are the kernel
// knows; what becomes of the request, whoever reads them.
std::string describe(const query::Carrier& carrier, causal::EdgeClass least) {
  const query::Cause& cause = carrier.cause;
  if (is_of_sockets(carrier)) {
    return fmt::format("{}{}{}", name_of(cause.act), bytes_of(cause.medium),
                       cause.act == query::Act::Receive ? " (the class is its program's)" : "");
  }
  if (cause.act == query::Act::End) return std::string(name_of(cause.act));
  return fmt::format("{} ({}{})", name_of(cause.act), causal::name_of(cause.how),
                     cause.how > least ? ", not believed" : "");
}

std::string names_of(const std::vector<query::NamedExpression>& columns) {
  std::vector<std::string_view> names(columns.size());
  std::transform(
      columns.begin(), columns.end(), names.begin(),
      [](const query::NamedExpression& column) { return std::string_view(column.name); });
  return fmt::format("{}", fmt::join(names, ", "));
}

// Those of a query with groups are one row for each group.
std::string describe_groups(const query::Join& join) {
  const Query& groups = join.subquery[0];
  return fmt::format("join {}: {} of all that happened before{}{}", join.name,
                     names_of(groups.columns),
                     groups.values.empty() ? "" : ", by " + names_of(groups.values),
                     join.left ? ", or a row without" : "");
}

// Which of those that fit.
std::string describe_choice(const query::Join& join) {
  constexpr std::array<std::string_view, 5> kFilters = {"all of", "the first of", "the first of",
                                                        "the most recent of", "the most recent of"};
  return fmt::format("{} {}", kFilters[static_cast<size_t>(join.filter)], join.name);
}

std::string describe_most(const query::Join& join) {
  const bool is_counted =
      join.filter == query::JoinFilter::FirstN || join.filter == query::JoinFilter::MostRecentN;
  return is_counted ? fmt::format(", {} at most", join.count) : "";
}

// The joined event's keys, as conditions.
std::string describe_by_time(const query::Join& join, const Query& query) {
  const query::Within& within = *join.within;
  std::vector<std::string> equal;
  for (size_t i = 0; i < within.joined.size(); ++i) {
    equal.push_back(fmt::format("{} equals {}", query::print(within.joined[i], query),
                                query::print(within.other[i], query)));
  }
  constexpr std::array<std::string_view, 3> kSides = {"", " before", " after"};
  return fmt::format("join {} with {}, within {}{}{}{}", describe_choice(join),
                     fmt::join(equal, " and "), query::print_duration(within.ns),
                     kSides[static_cast<size_t>(within.side)], describe_most(join),
                     join.left ? ", or a row without" : "");
}

std::string of_keys(const query::Within& within) {
  return within.one_in == 1 ? "" : fmt::format(" (of one key in {}, in the probes)", within.one_in);
}

// What is kept of what began, and what ends it.
PlanLine describe_outstanding(const Query& query, const std::vector<std::string>& fields) {
  const query::Join& join = query.joins[0];
  std::vector<std::string> equal;
  for (size_t i = 0; i < join.within->other.size(); ++i) {
    equal.push_back(fmt::format("{} equals {}", query::print(join.within->other[i], query),
                                query::print(join.within->joined[i], query)));
  }
  std::vector<std::string> ends;
  ends.reserve(join.sources.size());
  for (const query::Source& source : join.sources)
    ends.push_back(query::print(source));
  return {.tier = "node",
          .what = fmt::format("hold what began until {} with {}{}, {} at most; kept of each: {}",
                              fmt::join(ends, ", "), fmt::join(equal, " and "),
                              of_keys(*join.within), kOutstandingMax,
                              fields.empty() ? "nothing" : fmt::to_string(fmt::join(fields, ", "))),
          .stream = "e",
          .fields = fields};
}

std::string describe(const query::Join& join, const Query& query) {
  if (join.within) return describe_by_time(join, query);
  if (!join.subquery.empty() && join.subquery[0].shape == query::Shape::Groups)
    return describe_groups(join);
  return fmt::format("join {} that happened before{}{}", describe_choice(join), describe_most(join),
                     join.left ? ", or a row without" : "");
}

std::string describe_packed(const query::Join& join, const Bag& bag, std::string_view source,
                            const std::vector<std::string>& fields) {
  std::string what = join.name;
  if (bag.kind == abi::BagKind::First) what += ", the first";
  if (bag.kind == abi::BagKind::MostRecent) what += ", the most recent";
  if (bag.kind == abi::BagKind::Cells)
    what += fmt::format(": {} of all", names_of(join.subquery[0].columns));
  const bool names_fields = bag.kind != abi::BagKind::Cells && !fields.empty();
  return fmt::format("{} packs {} of the request: {} bytes{}{}", source, what, bag.packed_bytes(),
                     names_fields ? ", " : "",
                     names_fields ? fmt::to_string(fmt::join(fields, ", ")) : "");
}

}  // namespace

bool follows_messages(const Joined& joined) {
  return std::any_of(joined.roles.begin(), joined.roles.end(), [](const auto& roles) {
    return std::any_of(roles.begin(), roles.end(), [](const JoinRole& role) {
      return role.carrier && is_of_sockets(*role.carrier);
    });
  });
}

bool counts_bytes(const Joined& joined) {
  return std::any_of(joined.roles.begin(), joined.roles.end(), [](const auto& roles) {
    return std::any_of(roles.begin(), roles.end(), [](const JoinRole& role) {
      return role.carrier && role.carrier->cause.medium != query::Medium::Tcp;
    });
  });
}

std::string print(const std::vector<PlanLine>& lines) {
  std::string text;
  for (const PlanLine& line : lines)
    text += fmt::format("  {:<8} {}\n", line.tier, line.what);
  return text;
}

std::vector<PlanLine> lines_of(std::string_view printed) {
  constexpr size_t kTier = 2, kWhat = 11;  // Where they begin.
  std::vector<PlanLine> lines;
  while (!printed.empty()) {
    const std::string_view line = printed.substr(0, printed.find('\n'));
    printed.remove_prefix(std::min(printed.size(), line.size() + 1));
    const std::string_view from_tier = line.substr(std::min(line.size(), kTier));
    lines.push_back({.tier = std::string(from_tier.substr(0, from_tier.find(' '))),
                     .what = std::string(line.substr(std::min(line.size(), kWhat)))});
  }
  return lines;
}

namespace {

void add_lines(std::string_view printed, std::vector<PlanLine>& lines) {
  std::vector<PlanLine> more = lines_of(printed);
  std::move(more.begin(), more.end(), std::back_inserter(lines));
}

constexpr const char* kProbe = "probe";
constexpr const char* kNode = "node";

// What is kept of a joined stream's events, as the query calls it.
std::vector<std::string> fields_of(const JoinStage& stage, size_t stream) {
  const JoinStage::Stream& of = stage.streams[stream];
  std::vector<std::string> fields;
  for (size_t i = 0; i < of.columns.size(); ++i)
    fields.push_back(stage.rest.inputs[of.begin + i].name);
  return fields;
}

void add_filter_in_front(const Query& query, size_t condition, std::string_view place,
                         std::vector<PlanLine>& lines) {
  const std::string text = query::print(query.where[condition], query);
  lines.push_back(
      {.tier = kProbe, .what = fmt::format("filter {}{}", text, place), .condition = text});
}

PlanLine filter_behind(const Query& query, const JoinStage::Behind& behind, std::string_view tier) {
  const std::string text = query::print(query.where[behind.condition], query);
  const std::string_view place =
      query::is_outstanding(query) ? "when it is asked" : "behind the join";
  return {.tier = std::string(tier),
          .what = fmt::format("filter {}, {}: {}", text, place, behind.why),
          .condition = text,
          .why = std::string(behind.why)};
}

// How long either side of a join by time waits for the other one.
std::string describe_held(const Joined& joined, size_t at, size_t index, const Query& query) {
  const JoinStage& stage = joined.stages[at];
  const query::Within& within = *stage.joins[index].within;
  const auto& subquery = stage.streams[index + 1].subquery;
  const int64_t lag = subquery ? lag_of(joined, *subquery) : 0;
  const auto of = [&within](query::JoinSide side, int64_t behind) {
    const int64_t wait = within.side == side ? 0 : static_cast<int64_t>(within.ns);
    return query::print_duration(static_cast<uint64_t>(wait + behind + kLateNs));
  };
  const std::string& other =
      stage.joins[index].after == 0 ? "e" : query.joins[stage.joins[index].after - 1U].name;
  const bool is_chosen = query.joins[index].filter != query::JoinFilter::All;
  return fmt::format("hold {} for {} and {} for {}, {} of each at most; {}", other,
                     of(query::JoinSide::Before, lag), query.joins[index].name,
                     of(query::JoinSide::After, lag_of(joined, at, index)), kHeldMax,
                     is_chosen ? fmt::format("choose from {} at most", kChosenFromMax)
                               : fmt::format("join each with {} at most", kPartnersMax));
}

// A query that is joined has streams, joins and conditions of its own.
void add_stage(const Joined& joined, size_t at, const Query& query, std::vector<PlanLine>& lines) {
  const JoinStage& stage = joined.stages[at];
  const bool is_outstanding = query::is_outstanding(query);
  if (is_outstanding) lines.push_back(describe_outstanding(query, fields_of(stage, 0)));
  for (size_t i = 0; i < query.joins.size() && !is_outstanding; ++i) {
    const std::vector<std::string> fields = fields_of(stage, i + 1);
    const auto& subquery = stage.streams[i + 1].subquery;
    if (subquery) add_stage(joined, *subquery, query.joins[i].subquery[0], lines);
    lines.push_back({.tier = kNode,
                     .what = fmt::format(
                         "{}; kept of each: {}", describe(query.joins[i], query),
                         fields.empty() ? "nothing" : fmt::format("{}", fmt::join(fields, ", "))),
                     .stream = query.joins[i].name,
                     .fields = fields});
    if (stage.joins[i].within)
      lines.push_back({.tier = kNode, .what = describe_held(joined, at, i, query)});
  }
  for (const JoinStage::Behind& behind : stage.behind)
    lines.push_back(filter_behind(query, behind, kNode));
}

void add_filters_in_front(const Joined& joined, size_t at, const Query& query,
                          std::string_view place, std::vector<PlanLine>& lines) {
  const JoinStage& stage = joined.stages[at];
  for (const size_t condition : stage.pushed)
    add_filter_in_front(query, condition, place, lines);
  for (size_t i = 0; i < query.joins.size(); ++i) {
    const auto& subquery = stage.streams[i + 1].subquery;
    if (subquery) add_filters_in_front(joined, *subquery, query.joins[i].subquery[0], place, lines);
  }
}

}  // namespace

std::vector<PlanLine> explain(const Joined& joined, const std::function<bool(uint16_t)>& is_there,
                              const std::vector<std::string>& programs) {
  const Query& query = joined.stages[0].query;
  std::vector<PlanLine> lines;
  const auto node = [&lines](std::string what) {
    lines.push_back({.tier = kNode, .what = std::move(what)});
  };
  add_filters_in_front(joined, 0, query, "", lines);
  node("merge the streams of all probes and threads");
  for (size_t i = 0; i < joined.roles.size(); ++i) {
    for (const JoinRole& role : joined.roles[i]) {
      if (!role.carrier || !is_there(static_cast<uint16_t>(i))) continue;
      node(fmt::format("{} {}", query::print(joined.events.sources[i]),
                       describe(*role.carrier, joined.least_cause)));
    }
  }
  for (const std::string& program : programs)
    node(program);
  add_stage(joined, 0, query, lines);
  Plan rest = plain(query);
  std::erase_if(rest.operators, [](const Operator& op) {
    return op.kind == OperatorKind::Filter || op.kind == OperatorKind::Merge;
  });
  add_lines(print(rest), lines);
  return lines;
}

namespace {

// The answer's part: what is unpacked, then the conditions and the rest of its plan.
void add_answer(const Plan& plan, const Joined& joined, const Query& query,
                std::vector<PlanLine>& lines) {
  for (const query::Join& join : query.joins) {
    lines.push_back(
        {.tier = kProbe, .what = fmt::format("unpack {}: go on where it is packed", join.name)});
  }
  for (const Operator& op : plan.operators) {
    if (op.kind == OperatorKind::Filter) {
      const bool is_in_probe = plan.pushed(OperatorKind::Filter, op.index);
      lines.push_back(
          filter_behind(query, joined.stages[0].behind[op.index], is_in_probe ? kProbe : kNode));
      continue;
    }
    Plan one{.query = query, .operators = {op}};
    add_lines(print(one), lines);
  }
}

}  // namespace

std::vector<PlanLine> explain_in_place(const Plan& plan, const Joined& joined,
                                       const std::function<bool(uint16_t)>& is_there) {
  const Query& query = joined.stages[0].query;
  std::vector<PlanLine> lines;
  const Contexts& contexts = plan.contexts;
  add_filters_in_front(joined, 0, query, ", in front of what its event packs or unpacks", lines);
  for (size_t i = 0; i < contexts.duties.size(); ++i) {
    if (!is_there(static_cast<uint16_t>(i))) continue;
    const std::string source = query::print(joined.events.sources[i]);
    const Duty& duty = contexts.duties[i];
    if (duty.kind == Duty::Kind::Act) {
      lines.push_back(
          {.tier = kProbe,
           .what = fmt::format("{} {}", source,
                               describe(*joined.roles[i][0].carrier, joined.least_cause))});
    } else if (duty.kind == Duty::Kind::Pack) {
      const Bag& bag = contexts.bags[duty.bag];
      const std::vector<std::string> fields = fields_of(joined.stages[0], duty.bag + size_t{1});
      lines.push_back({.tier = kProbe,
                       .what = describe_packed(query.joins[duty.bag], bag, source, fields),
                       .stream = query.joins[duty.bag].name,
                       .fields = fields});
    }
  }
  add_answer(plan, joined, query, lines);
  return lines;
}

}  // namespace clew::plan
