// SPDX-License-Identifier: Apache-2.0
#include "doctor/measure.h"

#include <array>
#include <span>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <regex.h>

#include "base/assert.h"
#include "output/row_sink.h"

namespace clew::doctor {

// --- ids -----------------------------------------------------------------------------------------

struct IdPattern::Compiled {
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    if (is_good) regfree(&expression);
  }

  regex_t expression{};
  bool is_good = false;
};

Expected<IdPattern> IdPattern::compile(const std::string& text) {
  const auto compiled = std::make_shared<Compiled>();
  const int status = regcomp(&compiled->expression, text.c_str(), REG_EXTENDED);
  compiled->is_good = status == 0;
  if (compiled->is_good) return IdPattern(compiled);
  constexpr size_t kMessageBytesMax = 256;
  std::string message(kMessageBytesMax, '\0');
  message.resize(regerror(status, &compiled->expression, message.data(), message.size()) - 1);
  return fail(ErrorCode::InvalidQuery,
              fmt::format("--id: '{}' is no regular expression: {}", text, message));
}

std::optional<std::string> IdPattern::find(std::string_view text) const {
  const std::string whole(text);
  regmatch_t found{};
  if (regexec(&compiled_->expression, whole.c_str(), 1, &found, 0) != 0) return std::nullopt;
  return whole.substr(static_cast<size_t>(found.rm_so),
                      static_cast<size_t>(found.rm_eo - found.rm_so));
}

void note(Measured& sum, const IdPattern& pattern, const std::string& message,
          const std::optional<std::string>& question) {
  const std::optional<std::string> id = pattern.find(message);
  if (!id) return;
  ++sum.messages;
  const std::optional<std::string> asked = question ? pattern.find(*question) : std::nullopt;
  if (!asked) {
    ++sum.unknown;
  } else if (*asked == *id) {
    ++sum.right;
  } else {
    ++sum.wrong;
  }
}

// --- the process ---------------------------------------------------------------------------------

namespace {

// What is written in one piece, and the first of several pieces; what a request was read by is its
// first read.
constexpr std::array<std::string_view, 2> kQueries = {
    "from w in syscall(\"write\"), syscall(\"sendto\") left join r in "
    "First(syscall_return(\"read\"), syscall_return(\"recvfrom\")) on r -> w "
    "with cause >= heuristic select str((char*)w.arg1, 256) as written, "
    "str((char*)r.entry.arg1, 256) as asked",
    "from w in syscall(\"writev\") left join r in "
    "First(syscall_return(\"read\"), syscall_return(\"recvfrom\")) on r -> w "
    "with cause >= heuristic select str(*(char**)w.arg1, 256) as written, "
    "str((char*)r.entry.arg1, 256) as asked"};

class Pairs final : public output::RowSink {
 public:
  Pairs(const IdPattern& pattern, Measured& sum) : pattern_(pattern), sum_(sum) {}

  void begin(output::Columns columns, output::RowMode /*mode*/) override {
    CLEW_ASSERT(columns.size() == 2);
  }
  void row(std::span<const aggregate::Value> values) override {
    const auto* const written = std::get_if<std::string>(&values[0]);
    const auto* const asked = std::get_if<std::string>(&values[1]);
    if (written == nullptr) return;
    note(sum_, pattern_, *written, asked == nullptr ? std::nullopt : std::optional(*asked));
  }
  void end_interval(const output::Interval& /*interval*/) override {}
  void finish(const collect::Losses& losses) override {
    sum_.is_whole = sum_.is_whole && losses.dropped.empty();
  }

 private:
  const IdPattern& pattern_;
  Measured& sum_;
};

}  // namespace

Expected<Measured> measure(pid_t pid, const MeasureRequest& request,
                           const std::vector<std::string>& vocabulary_paths) {
  const IdPattern pattern = CLEW_TRY(IdPattern::compile(request.id));
  Measured sum;
  for (const std::string_view query : kQueries) {
    Pairs pairs(pattern, sum);
    engine::Request asked;
    asked.text = {.name = "doctor", .text = std::string(query)};
    asked.processes.pids = {pid};
    asked.vocabulary_paths = vocabulary_paths;
    asked.for_ns = request.for_ns / kQueries.size();
    asked.follow_forks = true;
    CLEW_TRY(engine::run(asked, request.stop_descriptor, pairs, *request.notices));
  }
  return sum;
}

void judge(const Measured& measured, Findings& findings) {
  if (measured.messages == 0) {
    return findings.note("measured",
                         {.detail = "it has written no message with such an id",
                          .remedy = "send it some requests meanwhile, or ask --for "
                                    "longer; ids that are not in the first 256 bytes "
                                    "are not seen, nor what sendmsg and sendfile write"});
  }
  const uint64_t known = measured.right + measured.wrong;
  const std::string counts = fmt::format(
      "{} messages with an id: {} right, {} wrong, {} unknown{}", measured.messages, measured.right,
      measured.wrong, measured.unknown, measured.is_whole ? "" : "; events were lost");
  if (known == 0) {
    return findings.note(
        "measured",
        {.detail = counts,
         .refused = "requests through it: nothing is known of any of its messages",
         .remedy = "see 'program' and 'hand-over': a [[program]] says what it does with "
                   "messages, and tracepoints with a cause how it hands them on"});
  }
  const auto share = [](uint64_t part, uint64_t all) {
    return static_cast<double>(part) / static_cast<double>(all);
  };
  const std::string shares =
      fmt::format("{} (precision {:.4f}, recall {:.4f})", counts, share(measured.right, known),
                  share(known, measured.messages));
  constexpr uint64_t kRightOfEachWrong = 999;
  if (measured.wrong * kRightOfEachWrong > measured.right) {
    return findings.note(
        "measured", {.detail = shares,
                     .remedy = "a table that is wrong so often should say how = \"heuristic\""});
  }
  findings.ok("measured", shares);
}

}  // namespace clew::doctor
