// SPDX-License-Identifier: Apache-2.0
// Streams and buckets are asked for as the server's API has them, in JSON: libnats' own calls for
// that wait where ours must not, and need more permissions.
#include "cluster/bus_nats.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cluster/base64.h"
#include "cluster/nats_connection.h"
#include "cluster/subject.h"

namespace clew::cluster {
namespace {

using nlohmann::json;

constexpr std::string_view kApi = "$JS.API.";
// Of ids, by the server's clock; what is appended again later is an entry again.
constexpr std::chrono::nanoseconds kDuplicateWindow = std::chrono::minutes(2);
constexpr int kMakingTakes = 3;  // Timeouts.

// What is asked for at once when a log is read.
constexpr size_t kReadAheadMax = 256;

// Error numbers of the server.
constexpr int kWrongLastSequence = 10071;
constexpr int kNameInUse = 10058;
constexpr int kStreamNotFound = 10059;
constexpr int kMessageNotFound = 10037;
constexpr int kTooManyStreams = 10027;
constexpr std::array kFull = {10077, 10047, 10028, kTooManyStreams, 10026, 10023, 10002};
constexpr std::array kNotAllowed = {10065, 10025};
constexpr std::array kSwitchedOff = {10039, 10076};

std::span<const std::byte> span_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// A server may be anybody's, too: members that are not there, or of another type, are nothing.
json json_of(const NatsReply& reply) {
  const auto* begin = reinterpret_cast<const char*>(reply.bytes.data());
  return json::parse(begin, begin + reply.bytes.size(), nullptr, false);
}

uint64_t number_in(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

std::string text_in(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

json object_in(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? *found : json::object();
}

int error_in(const json& answer) {
  return static_cast<int>(number_in(object_in(answer, "error"), "err_code"));
}

bool is_one_of(std::span<const int> numbers, int number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

// Of an answer that has one.
Error api_error(const json& answer, std::string_view what) {
  const int number = error_in(answer);
  std::string text = text_in(object_in(answer, "error"), "description");
  if (is_one_of(kSwitchedOff, number)) {
    text =
        "the server keeps no logs for this user: its account needs 'jetstream: enabled' in the "
        "server's configuration";
  }
  ErrorCode code = ErrorCode::Io;
  if (is_one_of(kFull, number)) code = ErrorCode::Limit;
  if (is_one_of(kNotAllowed, number) || number == kNameInUse || number == kWrongLastSequence)
    code = ErrorCode::Refused;
  return {code, fmt::format("{}: {}", what, text.empty() ? "the bus gives no reason" : text)};
}

bool is_as_wanted(const json& known, const json& stream) {
  return std::all_of(stream.items().begin(), stream.items().end(), [&known](const auto& each) {
    const auto found = known.find(each.key());
    return found != known.end() && *found == each.value();
  });
}

std::string cannot_be_made(const std::string& stream) {
  return fmt::format("'{}' cannot be made", stream);
}

// What a server has to have for a stream, where it says only that it has not.
Error making_error(const json& answer, const json& stream) {
  Error error = api_error(answer, cannot_be_made(text_in(stream, "name")));
  if (error_in(answer) == kTooManyStreams) {
    error.message += "; each tenant needs two: max_streams of its account";
  } else if (const uint64_t most = number_in(stream, "max_bytes");
             error.code == ErrorCode::Limit && most != 0) {
    error.message += fmt::format(
        "; it takes {} MiB of each server's disk and max_file, and {} MiB of the account's "
        "max_file, where the configuration has these",
        most >> 20, (most >> 20) * std::max<uint64_t>(number_in(stream, "num_replicas"), 1));
  }
  return error;
}

json stream_of(std::string_view log, std::string_view pattern, uint64_t most_bytes, int replicas) {
  return {{"name", log},
          {"subjects", json::array({pattern})},
          {"retention", "limits"},
          {"max_consumers", -1},
          {"max_msgs", -1},
          {"max_bytes", most_bytes},
          {"max_age", 0},
          {"discard", "new"},
          {"storage", "file"},
          {"num_replicas", replicas},
          {"duplicate_window", kDuplicateWindow.count()},
          {"allow_direct", true}};
}

// As any client of NATS' KV makes it, of one value a key.
json bucket_of(std::string_view bucket, int replicas) {
  return {{"name", fmt::format("KV_{}", bucket)},
          {"subjects", json::array({fmt::format("$KV.{}.>", bucket)})},
          {"retention", "limits"},
          {"max_consumers", -1},
          {"max_msgs", -1},
          {"max_bytes", -1},
          {"max_msgs_per_subject", 1},
          {"discard", "new"},
          {"storage", "file"},
          {"num_replicas", replicas},
          {"deny_delete", true},
          {"allow_rollup_hdrs", true},
          {"allow_direct", true}};
}

class NatsEnd final : public Bus {
 public:
  NatsEnd(NatsOptions options, std::unique_ptr<NatsConnection> connection)
      : options_(std::move(options)), connection_(std::move(connection)) {}

  [[nodiscard]] int descriptor() const override { return connection_->descriptor(); }
  [[nodiscard]] bool is_connected() const override { return connection_->is_connected(); }
  std::vector<std::string> take_complaints() override {
    return connection_->arrivals().take_complaints();
  }
  [[nodiscard]] uint64_t dropped() const override { return connection_->dropped(); }
  [[nodiscard]] std::string inbox() const override { return connection_->inbox(); }
  std::optional<Message> next() override {
    connection_->revive();
    return connection_->arrivals().next();
  }

  Expected<void> publish(std::string_view subject, std::span<const std::byte> bytes,
                         std::string_view reply) override {
    CLEW_TRY(check_subject(subject));
    if (!reply.empty()) CLEW_TRY(check_subject(reply));
    CLEW_TRY(check_size(bytes));
    return connection_->publish(subject, bytes, reply);
  }
  Expected<void> subscribe(std::string_view pattern, std::string_view group) override {
    CLEW_TRY(check_pattern(pattern));
    if (!group.empty()) CLEW_TRY(check_name(group));
    return connection_->subscribe(pattern, group);
  }
  Expected<void> unsubscribe(std::string_view pattern) override {
    return connection_->unsubscribe(pattern);
  }

  Expected<void> make_log(std::string_view log, std::string_view pattern,
                          uint64_t most_bytes) override;
  Expected<uint64_t> append(std::string_view subject, std::string_view id,
                            std::span<const std::byte> bytes) override;
  Expected<std::vector<Entry>> read(std::string_view log, uint64_t after, size_t most) override;
  Expected<LogEnds> ends(std::string_view log) override;
  Expected<void> forget(std::string_view log, uint64_t up_to) override;

  Expected<std::optional<Revised>> get(std::string_view bucket, std::string_view key) override;
  Expected<uint64_t> put(std::string_view bucket, std::string_view key,
                         std::span<const std::byte> bytes, uint64_t revision) override;

 private:
  Expected<NatsReply> ask(const NatsRequest& request, int timeouts = 1);
  // The answer of one function of the API; Io if it is none.
  Expected<json> ask_api(std::string_view function, const json& question, int timeouts = 1);
  // Its sequence, or nothing: it was not kept, since no stream is there for it.
  Expected<std::optional<uint64_t>> store(const NatsRequest& request, std::string_view what);
  // Makes it, or what is there becomes as `stream` says.
  Expected<void> make_stream(const json& stream);
  Expected<std::vector<Entry>> read_directly(std::string_view log,
                                             std::span<const std::string> questions);

  NatsOptions options_;
  std::unique_ptr<NatsConnection> connection_;
};

// --- logs
// ------------------------------------------------------------------------------------------

Expected<void> NatsEnd::make_log(std::string_view log, std::string_view pattern,
                                 uint64_t most_bytes) {
  CLEW_TRY(check_name(log));
  CLEW_TRY(check_pattern(pattern));
  return make_stream(stream_of(log, pattern, most_bytes, options_.replicas));
}

Expected<uint64_t> NatsEnd::append(std::string_view subject, std::string_view id,
                                   std::span<const std::byte> bytes) {
  CLEW_TRY(check_subject(subject));
  CLEW_TRY(check_id(id));
  CLEW_TRY(check_size(bytes));
  NatsRequest request = {.subject = std::string(subject), .bytes = bytes};
  if (!id.empty()) request.headers.emplace_back("Nats-Msg-Id", id);
  const auto sequence = CLEW_TRY(store(request, fmt::format("'{}'", subject)));
  if (sequence) return *sequence;
  return fail(ErrorCode::Io, fmt::format("no log keeps '{}' at present", subject));
}

// Entries have one number after another, but for those that were forgotten. The first is asked for
// as the first one from there on; behind it by numbers, ever more at once. Of a stream with
// replicas each question may be answered by another one, which may have fewer entries: an entry
// that is not there ends what is read, so that none is skipped that only this replica lacks.
Expected<std::vector<Entry>> NatsEnd::read(std::string_view log, uint64_t after, size_t most) {
  CLEW_TRY(check_name(log));
  std::vector<Entry> entries;
  size_t bytes = 0;
  size_t at_once = 1;
  while (entries.size() < most && bytes < kReadBytesMax) {
    std::vector<std::string> questions;
    if (entries.empty()) {
      questions.push_back(fmt::format(R"({{"seq":{},"next_by_subj":">"}})", after + 1));
    } else {
      const size_t room = (kReadBytesMax - bytes) / (bytes / entries.size() + 1) + 1;
      at_once = std::min({at_once * 4, kReadAheadMax, most - entries.size(), room});
      for (size_t i = 1; i <= at_once; ++i)
        questions.push_back(fmt::format(R"({{"seq":{}}})", entries.back().sequence + i));
    }
    std::vector<Entry> more = CLEW_TRY(read_directly(log, questions));
    for (Entry& entry : more) {
      bytes += entry.bytes.size();
      entries.push_back(std::move(entry));
    }
    if (more.size() < questions.size()) break;
  }
  return entries;
}

Expected<LogEnds> NatsEnd::ends(std::string_view log) {
  CLEW_TRY(check_name(log));
  const json answer = CLEW_TRY(ask_api(fmt::format("STREAM.INFO.{}", log), json::object()));
  if (error_in(answer) == kStreamNotFound)
    return fail(ErrorCode::NotFound, fmt::format("there is no log '{}'", log));
  if (answer.contains("error"))
    return tl::unexpected(api_error(answer, fmt::format("log '{}'", log)));
  const json state = object_in(answer, "state");
  const uint64_t last = number_in(state, "last_seq");
  const bool is_empty = number_in(state, "messages") == 0;
  const uint64_t made = std::hash<std::string>()(text_in(answer, "created"));
  return LogEnds{
      .log = made | 1, .first = is_empty ? last + 1 : number_in(state, "first_seq"), .last = last};
}

Expected<void> NatsEnd::forget(std::string_view log, uint64_t up_to) {
  CLEW_TRY(check_name(log));
  if (up_to == 0) return {};  // The server would take it for all.
  const json answer =
      CLEW_TRY(ask_api(fmt::format("STREAM.PURGE.{}", log), json{{"seq", up_to + 1}}));
  if (answer.contains("error"))
    return tl::unexpected(api_error(answer, fmt::format("log '{}'", log)));
  return {};
}

// --- keys
// ------------------------------------------------------------------------------------------

// Of the stream's leader, not of any replica: what was put is there.
Expected<std::optional<Revised>> NatsEnd::get(std::string_view bucket, std::string_view key) {
  CLEW_TRY(check_name(bucket));
  CLEW_TRY(check_subject(key));
  const json answer =
      CLEW_TRY(ask_api(fmt::format("STREAM.MSG.GET.KV_{}", bucket),
                       json{{"last_by_subj", fmt::format("$KV.{}.{}", bucket, key)}}));
  const int error = error_in(answer);
  if (error == kMessageNotFound || error == kStreamNotFound) return std::optional<Revised>();
  if (answer.contains("error"))
    return tl::unexpected(api_error(answer, fmt::format("bucket '{}'", bucket)));
  const json message = object_in(answer, "message");
  auto bytes = from_base64(text_in(message, "data"));
  const uint64_t revision = number_in(message, "seq");
  if (revision == 0 || !bytes) return fail(ErrorCode::Io, "the bus gives no right answer");
  return std::optional<Revised>({.revision = revision, .bytes = std::move(*bytes)});
}

Expected<uint64_t> NatsEnd::put(std::string_view bucket, std::string_view key,
                                std::span<const std::byte> bytes, uint64_t revision) {
  CLEW_TRY(check_name(bucket));
  CLEW_TRY(check_subject(key));
  CLEW_TRY(check_size(bytes));
  const NatsRequest request = {
      .subject = fmt::format("$KV.{}.{}", bucket, key),
      .bytes = bytes,
      .headers = {{"Nats-Expected-Last-Subject-Sequence", std::to_string(revision)}}};
  const std::string what = fmt::format("key '{}'", key);
  if (const auto stored = CLEW_TRY(store(request, what))) return *stored;
  CLEW_TRY(make_stream(bucket_of(bucket, options_.replicas)));
  if (const auto stored = CLEW_TRY(store(request, what))) return *stored;
  return fail(ErrorCode::Io, fmt::format("bucket '{}' is not there at present", bucket));
}

// --- what all of them ask
// ----------------------------------------------------------------------------

Expected<NatsReply> NatsEnd::ask(const NatsRequest& request, int timeouts) {
  connection_->revive();
  auto replies = CLEW_TRY(connection_->ask(std::span(&request, 1), options_.timeout * timeouts));
  return std::move(replies[0]);
}

Expected<json> NatsEnd::ask_api(std::string_view function, const json& question, int timeouts) {
  const std::string text = question.dump();
  const NatsReply reply = CLEW_TRY(
      ask({.subject = fmt::format("{}{}", kApi, function), .bytes = span_of(text)}, timeouts));
  if (!reply.status.empty()) {
    return fail(ErrorCode::Io,
                "the bus keeps no logs at present: JetStream does not answer; its servers need "
                "'jetstream' in their configuration, or nats-server -js");
  }
  json answer = json_of(reply);
  if (!answer.is_object()) return fail(ErrorCode::Io, "the bus gives no right answer");
  return answer;
}

Expected<std::optional<uint64_t>> NatsEnd::store(const NatsRequest& request,
                                                 std::string_view what) {
  const NatsReply reply = CLEW_TRY(ask(request));
  if (!reply.status.empty()) return std::optional<uint64_t>();
  const json answer = json_of(reply);
  if (answer.is_object() && answer.contains("error"))
    return tl::unexpected(api_error(answer, what));
  const uint64_t sequence = number_in(answer, "seq");
  if (sequence == 0) return fail(ErrorCode::Io, fmt::format("{}: no right answer", what));
  return std::optional(sequence);
}

Expected<void> NatsEnd::make_stream(const json& stream) {
  const std::string name = text_in(stream, "name");
  const std::string what = cannot_be_made(name);
  json answer = CLEW_TRY(ask_api("STREAM.CREATE." + name, stream, kMakingTakes));
  if (error_in(answer) == kNameInUse) {
    answer = CLEW_TRY(ask_api("STREAM.INFO." + name, json::object()));
    const json known = object_in(answer, "config");
    if (known.value("subjects", json::array()) != stream["subjects"]) {
      return fail(ErrorCode::Refused, fmt::format("{}: it is there, for other subjects", what));
    }
    // A server may have no room for as much again, where all it has to do is nothing.
    if (is_as_wanted(known, stream)) return {};
    answer = CLEW_TRY(ask_api("STREAM.UPDATE." + name, stream, kMakingTakes));
  }
  if (answer.contains("error")) return tl::unexpected(making_error(answer, stream));
  const json made = object_in(answer, "config");
  if (made.value("allow_direct", json()) == json(true)) return {};
  return fail(ErrorCode::Refused,
              fmt::format("{}: the server is too old; NATS 2.9 or newer is needed", what));
}

Expected<std::vector<Entry>> NatsEnd::read_directly(std::string_view log,
                                                    std::span<const std::string> questions) {
  connection_->revive();
  std::vector<NatsRequest> requests;
  for (const std::string& question : questions) {
    requests.push_back(
        {.subject = fmt::format("{}DIRECT.GET.{}", kApi, log), .bytes = span_of(question)});
  }
  auto replies = CLEW_TRY(connection_->ask(requests, options_.timeout));
  std::vector<Entry> entries;
  for (NatsReply& reply : replies) {
    if (reply.status == "404") break;
    if (!reply.status.empty())
      return fail(ErrorCode::Io, fmt::format("there is no log '{}' at present", log));
    Entry entry = {
        .sequence = 0, .subject = std::move(reply.subject), .bytes = std::move(reply.bytes)};
    const char* const begin = reply.sequence.data();
    (void)std::from_chars(begin, begin + reply.sequence.size(), entry.sequence);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

Expected<std::unique_ptr<Bus>> connect_nats(const NatsOptions& options) {
  auto connection = CLEW_TRY(NatsConnection::open(options));
  return std::unique_ptr<Bus>(std::make_unique<NatsEnd>(options, std::move(connection)));
}

}  // namespace clew::cluster
