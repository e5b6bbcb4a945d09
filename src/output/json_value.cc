// SPDX-License-Identifier: Apache-2.0
#include "output/json_value.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "output/format.h"

namespace clew::output {
namespace {

using aggregate::Bucket;
using aggregate::BucketEdge;
using aggregate::Histogram;
using aggregate::TopItem;
using aggregate::TopList;

Json bucket_json(const Bucket& bucket) {
  switch (bucket.edge) {
    case BucketEdge::From:
      return {{"value", bucket.low}, {"count", bucket.count}};
    case BucketEdge::FromUnsigned:
      return {{"value", static_cast<uint64_t>(bucket.low)}, {"count", bucket.count}};
    case BucketEdge::Below:
      return {{"below", bucket.low}, {"count", bucket.count}};
    case BucketEdge::AtLeast:
      return {{"at_least", bucket.low}, {"count", bucket.count}};
    case BucketEdge::UpTo:
      return {{"at_most", bucket.low}, {"count", bucket.count}};
    case BucketEdge::Around:
      return {{"around", bucket.low}, {"count", bucket.count}};
  }
  return {};
}

// What is not known is left out.
Json frame_json(const aggregate::Frame& frame) {
  Json object = Json::object();
  if (frame.address != 0) object["address"] = frame.address;
  if (!frame.symbol.empty()) {
    object["symbol"] = frame.symbol;
    object["offset"] = frame.offset;
  }
  if (!frame.module.empty()) object["module"] = frame.module;
  if (!frame.file.empty()) object["file"] = frame.file;
  if (frame.line != 0) object["line"] = frame.line;
  if (frame.inlined) object["inlined"] = true;
  return object;
}

struct ToJson {
  aggregate::ColumnType type;

  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(int64_t number) const { return number; }
  Json operator()(uint64_t number) const {
    return type == aggregate::ColumnType::Boolean ? Json(number != 0) : Json(number);
  }
  Json operator()(double number) const { return number; }
  Json operator()(const std::string& text) const {
    if (type != aggregate::ColumnType::Record) return text;
    // What a program has as text may be no UTF-8.
    const Json valid = Json::parse(json_text(text), nullptr, false);
    Json record = Json::parse(valid.get<std::string>(), nullptr, false);
    return record.is_discarded() ? Json(text) : record;
  }
  // Empty buckets are left out.
  Json operator()(const Histogram& histogram) const {
    Json list = Json::array();
    for (const Bucket& bucket : histogram.buckets) {
      if (bucket.count != 0) list.push_back(bucket_json(bucket));
    }
    return list;
  }
  Json operator()(const TopList& top) const {
    Json list = Json::array();
    for (const TopItem& item : top.items) {
      list.push_back({{"value", std::visit(*this, item.value)}, {"count", item.count}});
    }
    return list;
  }
  Json operator()(const aggregate::Stack& stack) const {
    Json list = Json::array();
    for (const aggregate::Frame& frame : stack.frames)
      list.push_back(frame_json(frame));
    return list;
  }
};

Json causes_json(const collect::Causes& causes) {
  Json object = Json::object();
  for (const auto& [cause, count] : causes)
    object[cause] = count;
  return object;
}

}  // namespace

Json disarmed_json(const collect::DisarmedProbe& disarmed) {
  if (disarmed.bound > 0) {
    return {{"probe", disarmed.probe},
            {"process", disarmed.process},
            {"share", disarmed.share},
            {"max_overhead", disarmed.bound},
            {"after_ms", disarmed.after_ms}};
  }
  return {{"probe", disarmed.probe},
          {"process", disarmed.process},
          {"out_of_fuel", disarmed.exhausted}};
}

namespace {

Json sites_json(const std::vector<collect::RefusedSite>& sites) {
  Json list = Json::array();
  for (const collect::RefusedSite& site : sites) {
    list.push_back({{"function", site.function}, {"kind", site.kind}, {"reason", site.reason}});
  }
  return list;
}

constexpr double kShownDeviations = 1.96;  // 95 %

Json share_json(const collect::ShareSamples& samples) {
  return {{"samples", samples.all},
          {"in_probes", samples.probes},
          {"share", samples.share()},
          {"share_low", samples.at_least(kShownDeviations)},
          {"share_high", samples.at_most(kShownDeviations)}};
}

// The processes whose probes were seen.
Json processes_json(const collect::Cost& cost) {
  Json list = Json::array();
  for (const collect::ProcessCost& process : cost.processes) {
    if (process.samples.probes == 0) continue;
    Json one = {{"process", process.process}};
    one.update(share_json(process.samples));
    for (const collect::FunctionCost& function : process.functions) {
      one["functions"].push_back(
          {{"function", function.function}, {"in_probes", function.samples}});
    }
    list.push_back(std::move(one));
  }
  return list;
}

Json cost_json(const collect::Cost& cost) {
  Json json = Json::object();
  if (cost.bound != 0) json["max_overhead"] = cost.bound;
  if (!cost.unmeasured.empty()) json["unmeasured"] = cost.unmeasured;
  if (cost.samples_a_second != 0) {
    json["samples_a_second"] = cost.samples_a_second;
    json["samples_lost"] = cost.samples_lost;
    json.update(share_json(cost.whole()));
    json["processes"] = processes_json(cost);
  }
  json["own_cpu_ms"] = cost.own_cpu_ms;
  json["own_ms"] = cost.own_ms;
  json["stops"] = cost.stops;
  json["stopped_ms"] = cost.stopped_ms;
  return json;
}

}  // namespace

Json losses_json(const collect::Losses& losses) {
  Json summary = Json::object();
  summary["missed"] = causes_json(losses.missed);
  summary["dropped"] = causes_json(losses.dropped);
  summary["lost"] = losses.lost;
  summary["refused"] = sites_json(losses.refused);
  if (!losses.uprobes.empty()) summary["uprobes"] = sites_json(losses.uprobes);
  for (const collect::DisarmedProbe& disarmed : losses.disarmed)
    summary["disarmed"].push_back(disarmed_json(disarmed));
  for (const collect::LeftOut& process : losses.left_out)
    summary["left_out"].push_back({{"process", process.process}, {"reason", process.reason}});
  if (losses.open.count != 0) {
    summary["open_calls"]["count"] = losses.open.count;
    if (losses.open.oldest_ns != 0) summary["open_calls"]["oldest_ns"] = losses.open.oldest_ns;
  }
  if (!losses.left_by_jump.empty()) summary["left_by_jump"] = losses.left_by_jump;
  if (!losses.causal.empty()) summary["by_cause"] = causes_json(losses.causal);
  summary["sites"] = losses.sites;
  summary["attach_ms"] = losses.attach_ms;
  summary["stopped_ms"] = losses.stopped_ms;
  if (losses.window_ms != 0) {
    summary["processes"] = losses.processes;
    summary["window_ms"] = losses.window_ms;
  }
  if (losses.cost.own_ms > 0) summary["cost"] = cost_json(losses.cost);
  return summary;
}

Json to_json(const aggregate::Value& value, aggregate::ColumnType type) {
  return std::visit(ToJson{type}, value);
}

Json exact_text(const std::string& text) {
  if (is_utf8(text)) return text;
  std::string digits;
  for (const char byte : text)
    digits += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return {{"hex", std::move(digits)}};
}

std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace clew::output
