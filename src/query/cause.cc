// SPDX-License-Identifier: Apache-2.0
#include "query/cause.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "query/arithmetic.h"
#include "query/diagnostic.h"
#include "query/parse.h"
#include "query/vocabulary.h"

namespace clew::query {
namespace {

using causal::EdgeClass;

struct ActName {
  std::string_view name;
  Act act;
  bool has_key;
  bool across;
};
constexpr std::array<ActName, 8> kActs = {{{"begin", Act::Begin, false, false},
                                           {"end", Act::End, false, false},
                                           {"multiplexed", Act::Multiplex, false, false},
                                           {"put", Act::Put, true, false},
                                           {"take", Act::Take, true, false},
                                           {"join", Act::Join, true, false},
                                           {"send", Act::Put, true, true},
                                           {"receive", Act::Take, true, true}}};

struct ClassName {
  std::string_view name;
  EdgeClass how;
};
// What is sound needs no vocabulary.
constexpr std::array<ClassName, 3> kClasses = {{{"explicit", EdgeClass::Explicit},
                                                {"recipe", EdgeClass::Recipe},
                                                {"heuristic", EdgeClass::Heuristic}}};

template <typename Names>
std::string nearest(std::string_view name, const Names& all) {
  std::vector<std::string_view> names;
  names.reserve(all.size());
  for (const auto& each : all)
    names.push_back(each.name);
  return did_you_mean(name, names);
}

template <typename Names>
const typename Names::value_type* find(const Names& all, std::string_view name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

std::string text_of(const Cause& cause) {
  const auto found = std::find_if(kActs.begin(), kActs.end(), [&cause](const ActName& each) {
    return each.act == cause.act && each.across == cause.across;
  });
  std::string text(found == kActs.end() ? "" : found->name);
  for (const std::string* const key : {&cause.key, &cause.low_key}) {
    if (!key->empty()) text += " " + *key;
  }
  return text;
}

std::string describe(const Cause& cause) {
  const std::string_view reach = cause.across ? ", to any process" : "";
  const std::string key =
      cause.low_key.empty() ? cause.key : fmt::format("token {} {}", cause.key, cause.low_key);
  switch (cause.act) {
    case Act::Begin:
      return "a request begins";
    case Act::End:
      return "the thread leaves its request";
    case Act::Put:
      return fmt::format("the request is handed over with {}{}", key, reach);
    case Act::Take:
      return fmt::format("the thread goes on with the request that {} was handed over with", key);
    case Act::Join:
      return fmt::format("the thread goes on behind what {} was handed over with, too", cause.key);
    case Act::Fork:
      return fmt::format("thread or process {} goes on with the request", cause.key);
    case Act::Multiplex:
      return "the thread reads from a connection with several requests at a time";
    case Act::Execute:
      return "the process runs another program";
    case Act::Exit:
      return "the thread has ended";
    case Act::Connect:
      return "a connection of the thread's request is made";
    case Act::Send:
      return "bytes take the request along";
    case Act::Receive:
      return "the thread goes on with the request of the bytes";
    case Act::Wait:
      return "the thread waits for events";
  }
  return "";
}

Expected<Cause> parse_cause(std::string_view cause, std::string_view how) {
  const size_t space = cause.find(' ');
  const std::string_view verb = cause.substr(0, space);
  std::string_view key =
      space == std::string_view::npos ? std::string_view{} : cause.substr(space + 1);
  const ActName* const act = find(kActs, verb);
  if (act == nullptr) {
    return fail(
        ErrorCode::InvalidQuery,
        fmt::format(
            "'cause' is begin, end or multiplexed, or put, take, join, send or receive with an "
            "export, not '{}'{}",
            verb, nearest(verb, kActs)));
  }
  if (act->has_key == key.empty()) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("'{}' {}", verb,
                            act->has_key ? "needs the name of an export behind it"
                                         : "has nothing behind it"));
  }
  std::string_view low_key;
  const size_t other = act->across ? key.find(' ') : std::string_view::npos;
  if (other != std::string_view::npos) {
    low_key = key.substr(other + 1);
    key = key.substr(0, other);
  }
  const ClassName* const known = find(kClasses, how);
  if (known == nullptr) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("'how' is explicit, recipe or heuristic, not '{}'{}", how,
                            nearest(how, kClasses)));
  }
  return Cause{.act = act->act,
               .across = act->across,
               .key = std::string(key),
               .low_key = std::string(low_key),
               .how = known->how};
}

KeyForm form_of(const Carrier& carrier) {
  if (!carrier.cause.across) return KeyForm::Number;
  if (!carrier.cause.low_key.empty()) return KeyForm::Token;
  return carrier.keys[0].type.kind == TypeKind::String ? KeyForm::Text : KeyForm::Number;
}

namespace {

// An object's is a number; a message's can be a text, if that is all of it.
bool can_be_key(const Expression& value, const Cause& cause) {
  if (value.type.kind == TypeKind::Integer) return true;
  return value.type.kind == TypeKind::String && cause.across && cause.low_key.empty();
}

}  // namespace

// Through the language, so that names mean what they mean in queries.
Expected<std::vector<Carrier>> carriers_at(const Text& text, const Cause& cause,
                                           const Environment& environment) {
  const Query query = CLEW_TRY(parse(text, environment));
  std::vector<Carrier> all;
  for (const Source& place : query.sources) {
    Carrier carrier{.source = place, .cause = cause};
    for (const NamedExpression& value : query.values) {
      if (!can_be_key(value.expression, cause)) {
        return fail(
            ErrorCode::InvalidQuery,
            fmt::format("'{}' is no number{}, so it tells no object from others", value.name,
                        cause.across && cause.low_key.empty() ? " and no text" : ""));
      }
      carrier.keys.push_back(bind(value.expression, place));
    }
    for (const Expression& condition : query.where)
      carrier.conditions.push_back(bind(condition, place));
    carrier.source.inputs.clear();
    carrier.source.may_miss = true;
    all.push_back(std::move(carrier));
  }
  return all;
}

namespace {

Expression is_not_zero(const Expression& number) {
  Expression zero = integer_constant(0, number.type, number.span);
  Expression made;
  made.kind = ExpressionKind::Binary;
  made.binary = BinaryOperator::NotEqual;
  made.type = kInt32;
  made.span = number.span;
  made.operands = {number, std::move(zero)};
  return made;
}

// Of begin and end the key is nothing.
Expected<std::vector<Carrier>> carriers_at(const std::string& source, const Cause& cause,
                                           const Environment& environment) {
  const std::string& key = cause.key;
  std::string query = fmt::format("from e in {} select e.{} as {}", source,
                                  key.empty() ? "pid" : key, key.empty() ? "key" : key);
  if (!cause.low_key.empty()) query += fmt::format(", e.{0} as {0}", cause.low_key);
  const Text text{.name = fmt::format("cause of {}", source), .text = std::move(query)};
  std::vector<Carrier> all = CLEW_TRY(carriers_at(text, cause, environment));
  for (Carrier& carrier : all) {
    if (key.empty()) carrier.keys.clear();
    // A system call serves many; at those that hand nothing over the key is 0.
    if (is_kernel_source(carrier.source.kind) && !carrier.keys.empty() &&
        form_of(carrier) == KeyForm::Number)
      carrier.conditions.push_back(is_not_zero(carrier.keys[0]));
  }
  return all;
}

}  // namespace

Expected<std::vector<Carrier>> carriers_of(const Vocabulary& vocabulary, TypeSource* types,
                                           const std::function<bool(const Source&)>& is_needed) {
  std::vector<Carrier> all;
  for (const TracepointDefinition& tracepoint : vocabulary.tracepoints()) {
    if (!tracepoint.cause) continue;
    // Most need no types, and a file of events has none.
    const auto find = [&](TypeSource* known) {
      return carriers_at(tracepoint.name, *tracepoint.cause,
                         {.vocabulary = &vocabulary, .types = known});
    };
    auto some = find(nullptr);
    if (!some && types != nullptr) some = find(types);
    const auto& places = tracepoint.places;
    if (!some && std::any_of(places.begin(), places.end(), [&](const TracepointPlace& place) {
          return is_needed(place.source);
        })) {
      return tl::unexpected(some.error());
    }
    if (some) std::move(some->begin(), some->end(), std::back_inserter(all));
  }
  return all;
}

Expected<std::vector<Carrier>> carriers_of_threads(TypeSource* types) {
  const Cause fork{.act = Act::Fork, .key = "child", .how = EdgeClass::Sound};
  const auto sound = [](Act act) { return Cause{.act = act, .key = {}, .how = EdgeClass::Sound}; };
  const Environment environment{.vocabulary = nullptr, .types = types};
  // The new one does not run before this event. The flag is CLONE_THREAD of clone(2).
  std::vector<Carrier> all = CLEW_TRY(
      carriers_at(Text{.name = "what the kernel knows of threads",
                       .text = "from e in tracepoint(\"task:task_newtask\") select e.args.pid as "
                               "child, (uint64_t)(e.clone_flags & 0x10000) as is_thread"},
                  fork, environment));
  for (const auto& [act, name] : {std::pair{Act::Execute, "sched:sched_process_exec"},
                                  std::pair{Act::Exit, "sched:sched_process_exit"}}) {
    std::vector<Carrier> some =
        CLEW_TRY(carriers_at(fmt::format("tracepoint(\"{}\")", name), sound(act), environment));
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace clew::query
