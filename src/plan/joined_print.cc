// SPDX-License-Identifier: Apache-2.0
// A query with joins, as `explain` shows it.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
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

std::string describe(const query::Join& join) {
  if (!join.subquery.empty() && join.subquery[0].shape == query::Shape::Groups)
    return describe_groups(join);
  constexpr std::array<std::string_view, 5> kFilters = {"all of", "the first of", "the first of",
                                                        "the most recent of", "the most recent of"};
  const bool is_counted =
      join.filter == query::JoinFilter::FirstN || join.filter == query::JoinFilter::MostRecentN;
  return fmt::format("join {} {} that happened before{}{}", kFilters[size_t(join.filter)],
                     join.name, is_counted ? fmt::format(", {} at most", join.count) : "",
                     join.left ? ", or a row without" : "");
}

std::string describe_packed(const query::Join& join, const Bag& bag) {
  switch (bag.kind) {
    case abi::BagKind::First:
      return join.name + ", the first";
    case abi::BagKind::MostRecent:
      return join.name + ", the most recent";
    case abi::BagKind::Cells:
      return fmt::format("{}: {} of all", join.name, names_of(join.subquery[0].columns));
  }
  return "";
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

std::string print(const Joined& joined, const std::function<bool(uint16_t)>& is_there,
                  const std::vector<std::string>& programs) {
  std::string text;
  const auto line = [&text](std::string_view tier, const std::string& what) {
    text += fmt::format("  {:<8} {}\n", tier, what);
  };
  for (const JoinStage& each : joined.stages) {
    for (const size_t condition : each.pushed)
      line("probe", "filter " + query::print(each.query.where[condition], each.query));
  }
  const JoinStage& stage = joined.stages[0];
  line("node", "merge the streams of all probes and threads");
  for (size_t i = 0; i < joined.roles.size(); ++i) {
    for (const JoinRole& role : joined.roles[i]) {
      if (!role.carrier || !is_there(static_cast<uint16_t>(i))) continue;
      line("node", fmt::format("{} {}", query::print(joined.events.sources[i]),
                               describe(*role.carrier, joined.least_cause)));
    }
  }
  for (const std::string& program : programs)
    line("node", program);
  for (const query::Join& join : stage.query.joins)
    line("node", describe(join));
  Plan rest = plain(stage.query);
  std::erase_if(rest.operators, [&stage](const Operator& op) {
    const auto& pushed = stage.pushed;
    const bool is_pushed = op.kind == OperatorKind::Filter &&
                           std::find(pushed.begin(), pushed.end(), op.index) != pushed.end();
    return op.kind == OperatorKind::Merge || is_pushed;
  });
  return text + print(rest);
}

std::string print_in_place(const Plan& plan, const Joined& joined,
                           const std::function<bool(uint16_t)>& is_there) {
  std::string text;
  const auto line = [&text](const std::string& what) {
    text += fmt::format("  {:<8} {}\n", "probe", what);
  };
  const Contexts& contexts = plan.contexts;
  const std::vector<query::Join>& joins = joined.stages[0].query.joins;
  for (size_t i = 0; i < contexts.duties.size(); ++i) {
    if (!is_there(static_cast<uint16_t>(i))) continue;
    const std::string source = query::print(joined.events.sources[i]);
    const Duty& duty = contexts.duties[i];
    if (duty.kind == Duty::Kind::Act) {
      line(fmt::format("{} {}", source, describe(*joined.roles[i][0].carrier, joined.least_cause)));
    } else if (duty.kind == Duty::Kind::Pack) {
      const Bag& bag = contexts.bags[duty.bag];
      line(fmt::format("{} packs {} of the request: {} bytes", source,
                       describe_packed(joins[duty.bag], bag), bag.packed_bytes()));
    }
  }
  for (const query::Join& join : joins)
    line(fmt::format("unpack {}: go on where it is packed", join.name));
  return text + print(plan);
}

}  // namespace clew::plan
