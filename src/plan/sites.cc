// SPDX-License-Identifier: Apache-2.0
#include "plan/sites.h"

#include <algorithm>
#include <map>

#include "plan/evaluate.h"
#include "plan/lower.h"

namespace clew::plan {
namespace {

using aggregate::Value;

// Only names of the site are known.
class SiteBindings final : public Bindings {
 public:
  SiteBindings(const query::Query& query, const SiteNames& site)
      : query_(query), source_(query.sources[site.source]), site_(site) {}

  Value field(const query::Expression& expression) override {
    switch (expression.field) {
      case query::Field::Function:
        return site_.function;
      case query::Field::Module:
        return site_.module;
      case query::Field::Probe:
        return site_.probe;
      case query::Field::Time:
      case query::Field::Pid:
      case query::Field::Tid:
      case query::Field::Cpu:
      case query::Field::Comm:
      case query::Field::ProcName:
      case query::Field::Host:
      case query::Field::NodeName:
      case query::Field::Container:
      case query::Field::Unit:
      case query::Field::ControlGroup:
      case query::Field::User:
      case query::Field::Uid:
      case query::Field::Caller:
      case query::Field::Stack:
      case query::Field::UserStack:
      case query::Field::KernelStack:
      case query::Field::Argument:
      case query::Field::ReturnValue:
      case query::Field::Elapsed:
      case query::Field::EntryArgument:
        return {};
    }
    return {};
  }
  Value input(uint16_t index) override { return evaluate(source_.inputs[index], *this); }
  Value let(uint16_t index) override { return evaluate(query_.lets[index].expression, *this); }
  Value value(uint16_t) override { return {}; }
  Value aggregate(uint16_t) override { return {}; }
  Value memory(const query::Expression&, uint64_t) override { return {}; }

 private:
  const query::Query& query_;
  const query::Source& source_;
  const SiteNames& site_;
};

struct KeyOrder {
  bool operator()(const aggregate::Key& a, const aggregate::Key& b) const {
    return std::lexicographical_compare(
        a.begin(), a.end(), b.begin(), b.end(),
        [](const Value& x, const Value& y) { return aggregate::compare(x, y) < 0; });
  }
};

bool passes(const Plan& plan, SiteBindings& bindings) {
  const query::Query& query = plan.query;
  return std::all_of(query.where.begin(), query.where.end(), [&](const query::Expression& e) {
    return !is_site_constant(query, e) || is_true(evaluate(e, bindings));
  });
}

}  // namespace

void group_sites(const Plan& plan, std::span<const SiteNames> sites, uint32_t groups_max,
                 Grouping& grouping) {
  const query::Query& query = plan.query;
  const bool dense = state_form(plan) == StateForm::Dense;
  std::map<aggregate::Key, uint32_t, KeyOrder> known;
  for (uint32_t group = 0; group < grouping.keys.size(); ++group) {
    known.emplace(grouping.keys[group], group);
  }
  for (const SiteNames& site : sites) {
    if (!plan.contexts.answers(site.source)) {
      grouping.group_of_site.emplace_back(0);  // It counts in none.
      continue;
    }
    SiteBindings bindings(query, site);
    if (!passes(plan, bindings)) {
      grouping.group_of_site.emplace_back();
      continue;
    }
    aggregate::Key key;
    for (const query::NamedExpression& value : query.values) {
      const bool constant = dense && is_site_constant(query, value.expression);
      key.push_back(constant ? evaluate(value.expression, bindings) : Value());
    }
    const auto [entry, is_new] = known.emplace(key, static_cast<uint32_t>(grouping.keys.size()));
    if (entry->second >= groups_max) {
      grouping.group_of_site.emplace_back();
      continue;
    }
    if (is_new) grouping.keys.push_back(std::move(key));
    grouping.group_of_site.emplace_back(entry->second);
  }
}

}  // namespace clew::plan
