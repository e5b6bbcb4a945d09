// SPDX-License-Identifier: Apache-2.0
// The provider of time: profile-N fires on every CPU, tick-N on one. N is a rate in hz, or with a
// suffix a rate or a period. A name that a description spells out is made when it is met; globs see
// the usual ones and those made before.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "kernel/providers/providers.h"

namespace clew::kernel {

namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
// DTrace's limit: 5000 firings a second.
constexpr uint64_t kPeriodMinNs = kSecondNs / 5000;
constexpr uint64_t kPeriodMaxNs = INT64_MAX;

struct Unit {
  std::string_view suffix;
  uint64_t period_ns;  // 0: a rate.
};

constexpr std::array kUnits = {
    Unit{"", 0},
    Unit{"hz", 0},
    Unit{"ns", 1},
    Unit{"nsec", 1},
    Unit{"us", 1000},
    Unit{"usec", 1000},
    Unit{"ms", 1'000'000},
    Unit{"msec", 1'000'000},
    Unit{"s", kSecondNs},
    Unit{"sec", kSecondNs},
    Unit{"m", 60 * kSecondNs},
    Unit{"min", 60 * kSecondNs},
    Unit{"h", 3600 * kSecondNs},
    Unit{"hour", 3600 * kSecondNs},
    Unit{"d", 86400 * kSecondNs},
    Unit{"day", 86400 * kSecondNs},
};

constexpr std::array kUsualNames = {
    "profile-97",   "profile-199",  "profile-499", "profile-997", "profile-1999",
    "profile-4001", "profile-4999", "tick-1",      "tick-10",     "tick-100",
    "tick-500",     "tick-1000",    "tick-5000",
};

// "997", "100ms", "5s". Nothing when it is malformed, 0, too fast or too slow.
std::optional<uint64_t> parse_period(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number == 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                 [text](const Unit& each) { return each.suffix == text; });
  if (unit == kUnits.end()) return std::nullopt;
  uint64_t period_ns = kSecondNs / number;
  if (unit->period_ns != 0) {
    if (number > kPeriodMaxNs / unit->period_ns) return std::nullopt;
    period_ns = number * unit->period_ns;
  }
  if (period_ns < kPeriodMinNs) return std::nullopt;
  return period_ns;
}

std::optional<Probe> make_probe(std::string_view name) {
  Probe probe;
  probe.provider = "profile";
  probe.name = name;
  if (name.starts_with("profile-")) {
    probe.kind = AttachKind::Profile;
  } else if (name.starts_with("tick-")) {
    probe.kind = AttachKind::Tick;
  } else {
    return std::nullopt;
  }
  const auto period_ns = parse_period(name.substr(name.find('-') + 1));
  if (!period_ns) return std::nullopt;
  probe.period_ns = *period_ns;
  return probe;
}

class ProfileProvider final : public Provider {
 public:
  ProfileProvider() : names_(kUsualNames.begin(), kUsualNames.end()) {}

  [[nodiscard]] bool may_match(const Glob& provider) const override {
    return provider.matches("profile");
  }

  Expected<void> match(const ProbeGlobs& globs, std::vector<Probe>& found) override {
    if (globs.name.is_literal()) {
      auto probe = make_probe(globs.name.literal());
      if (!probe || !globs.matches(*probe)) return {};
      if (std::find(names_.begin(), names_.end(), probe->name) == names_.end()) {
        names_.push_back(probe->name);
      }
      found.push_back(std::move(*probe));
      return {};
    }
    for (const std::string& name : names_) {
      auto probe = make_probe(name);
      if (probe && globs.matches(*probe)) found.push_back(std::move(*probe));
    }
    return {};
  }

  Expected<std::vector<ProbeArgument>> arguments(const Probe& /*probe*/) override {
    return std::vector<ProbeArgument>();
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<Provider> make_profile_provider() {
  return std::make_unique<ProfileProvider>();
}

}  // namespace clew::kernel
