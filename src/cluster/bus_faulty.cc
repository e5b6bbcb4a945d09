// SPDX-License-Identifier: Apache-2.0
#include "cluster/bus_faulty.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <sys/epoll.h>

#include "base/file_descriptor.h"
#include "cluster/arrivals.h"
#include "cluster/subject.h"

namespace clew::cluster {

// What an end lacks until it is due, and whether it is reached. Under the lock of the state.
struct FaultyLine {
  std::string name;
  std::unique_ptr<Bus> inner;
  Arrivals arrivals{};                      // What has come through.
  std::multimap<uint64_t, Message> late{};  // By the step in which it comes.
  uint64_t lost_until = 0;                  // The connection, before this step.
  bool is_cut = false;
  bool was_connected = true;  // In the step before.
};

// One lock for all, and one source of chance.
class FaultyState {
 public:
  FaultyState(uint64_t seed, Faults faults) : faults_(faults), chance_(seed) {}

  LocalHub& hub() { return hub_; }
  std::mutex& mutex() { return mutex_; }

  void add(FaultyLine* line) { lines_.push_back(line); }
  void remove(FaultyLine* line) { std::erase(lines_, line); }

  [[nodiscard]] bool is_connected(const FaultyLine& line) const {
    return !line.is_cut && line.lost_until <= step_ && line.inner->is_connected();
  }

  // Takes what the hub has delivered, with its faults.
  void take_in(FaultyLine& line) {
    while (auto message = line.inner->next()) {
      if (!is_connected(line) || happens(faults_.lose)) continue;
      const int copies = happens(faults_.twice) ? 2 : 1;
      for (int i = 0; i < copies; ++i)
        line.late.emplace(step_ + (happens(faults_.late) ? some_steps() : 0), *message);
    }
    hand_out(line);
  }

  void step() {
    for (FaultyLine* line : lines_) {
      const bool was_connected = is_connected(*line);
      if (was_connected && happens(faults_.disconnect)) line->lost_until = step_ + 1 + some_steps();
      line->was_connected = was_connected;
    }
    ++step_;
    for (FaultyLine* line : lines_) {
      take_in(*line);
      if (is_connected(*line) != line->was_connected) line->arrivals.ring();
    }
  }
  void heal() {
    faults_ = {};
    for (FaultyLine* line : lines_) {
      line->lost_until = 0;
      take_in(*line);
      for (auto& [due, message] : line->late)
        line->arrivals.put(std::move(message));
      line->late.clear();
      line->arrivals.ring();
    }
  }
  void cut(std::string_view name, bool is_cut) {
    for (FaultyLine* line : lines_) {
      if (line->name != name) continue;
      take_in(*line);
      line->is_cut = is_cut;
      line->arrivals.ring();
    }
  }

  // Whether a call fails without having happened.
  Expected<void> fails_before(const FaultyLine& line) {
    if (!is_connected(line)) return fail(ErrorCode::Io, "the bus is not reached at present");
    if (happens(faults_.fail_before)) return fail(ErrorCode::Io, "no answer, by a fault");
    return {};
  }
  // `result`, or a failure in its place.
  template <typename T>
  Expected<T> or_failed(Expected<T> result) {
    if (result && happens(faults_.fail_after))
      return fail(ErrorCode::Io, "no answer, by a fault; it has happened");
    return result;
  }
  // How many of so many entries are there.
  size_t some_of(size_t count) { return happens(faults_.behind) ? chance_() % count : count; }
  void skip_one(std::vector<Entry>& entries) {
    if (!happens(faults_.skip)) return;
    const size_t skipped = chance_() % (entries.size() - 1);  // Nobody misses the last one.
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(skipped));
  }

 private:
  bool happens(double probability) {
    if (probability <= 0) return false;  // Draws nothing, so that other faults stay as they are.
    constexpr double kAll = 18446744073709551616.0;
    return static_cast<double>(chance_()) < probability * kAll;
  }
  uint64_t some_steps() { return 1 + chance_() % std::max<uint64_t>(1, faults_.steps_max); }

  // Those of one step in an order of chance.
  void hand_out(FaultyLine& line) {
    std::vector<Message> due;
    const auto end = line.late.upper_bound(step_);
    for (auto at = line.late.begin(); at != end; ++at)
      due.push_back(std::move(at->second));
    line.late.erase(line.late.begin(), end);
    if (!is_connected(line)) return;  // As what a server has sent when a connection is lost.
    // What is not late keeps its order, as on any bus.
    if (faults_.late > 0) {
      for (size_t i = due.size(); i > 1; --i)
        std::swap(due[i - 1], due[chance_() % i]);
    }
    for (Message& message : due)
      line.arrivals.put(std::move(message));
  }

  Faults faults_;
  std::mt19937_64 chance_;
  std::mutex mutex_;
  LocalHub hub_;
  uint64_t step_ = 0;
  std::vector<FaultyLine*> lines_;  // In the order in which they connected.
};

namespace {

class FaultyEnd final : public Bus {
 public:
  FaultyEnd(std::shared_ptr<FaultyState> state, std::string name, Permissions permissions)
      : state_(std::move(state)),
        line_{.name = std::move(name), .inner = state_->hub().connect(std::move(permissions))},
        either_(epoll_create1(EPOLL_CLOEXEC)) {
    for (const int one : {line_.inner->descriptor(), line_.arrivals.descriptor()}) {
      epoll_event event = {.events = EPOLLIN, .data = {.fd = one}};
      (void)epoll_ctl(either_.get(), EPOLL_CTL_ADD, one, &event);
    }
    const std::lock_guard lock(state_->mutex());
    state_->add(&line_);
  }
  ~FaultyEnd() override {
    const std::lock_guard lock(state_->mutex());
    state_->remove(&line_);
  }

  [[nodiscard]] int descriptor() const override { return either_.get(); }
  [[nodiscard]] bool is_connected() const override {
    const std::lock_guard lock(state_->mutex());
    return state_->is_connected(line_);
  }
  std::vector<std::string> take_complaints() override { return line_.inner->take_complaints(); }
  [[nodiscard]] uint64_t dropped() const override {
    return line_.arrivals.dropped() + line_.inner->dropped();
  }
  std::optional<Message> next() override {
    const std::lock_guard lock(state_->mutex());
    state_->take_in(line_);
    return line_.arrivals.next();
  }
  [[nodiscard]] std::string inbox() const override { return line_.inner->inbox(); }

  Expected<void> publish(std::string_view subject, std::span<const std::byte> bytes,
                         std::string_view reply) override {
    const std::lock_guard lock(state_->mutex());
    CLEW_TRY(check_call(subject, bytes, reply));
    if (!state_->is_connected(line_)) return {};
    return line_.inner->publish(subject, bytes, reply);
  }
  // A server hears of it at the latest when the connection is back.
  Expected<void> subscribe(std::string_view pattern, std::string_view group) override {
    return line_.inner->subscribe(pattern, group);
  }
  Expected<void> unsubscribe(std::string_view pattern) override {
    return line_.inner->unsubscribe(pattern);
  }

  Expected<void> make_log(std::string_view log, std::string_view pattern,
                          uint64_t most_bytes) override {
    return call([&] { return line_.inner->make_log(log, pattern, most_bytes); });
  }
  Expected<uint64_t> append(std::string_view subject, std::string_view id,
                            std::span<const std::byte> bytes) override {
    return call([&] { return line_.inner->append(subject, id, bytes); });
  }
  Expected<std::vector<Entry>> read(std::string_view log, uint64_t after, size_t most) override {
    return call([&] {
      auto entries = line_.inner->read(log, after, most);
      if (entries && !entries->empty()) entries->resize(state_->some_of(entries->size()));
      if (entries && entries->size() > 1) state_->skip_one(*entries);
      return entries;
    });
  }
  Expected<LogEnds> ends(std::string_view log) override {
    return call([&] { return line_.inner->ends(log); });
  }
  Expected<void> forget(std::string_view log, uint64_t up_to) override {
    return call([&] { return line_.inner->forget(log, up_to); });
  }
  Expected<std::optional<Revised>> get(std::string_view bucket, std::string_view key) override {
    return call([&] { return line_.inner->get(bucket, key); });
  }
  Expected<uint64_t> put(std::string_view bucket, std::string_view key,
                         std::span<const std::byte> bytes, uint64_t revision) override {
    return call([&] { return line_.inner->put(bucket, key, bytes, revision); });
  }

 private:
  // What breaks a rule is told as such, also by an end that reaches nobody.
  static Expected<void> check_call(std::string_view subject, std::span<const std::byte> bytes,
                                   std::string_view reply) {
    CLEW_TRY(check_subject(subject));
    if (!reply.empty()) CLEW_TRY(check_subject(reply));
    return check_size(bytes);
  }
  template <typename Call>
  auto call(const Call& what) -> decltype(what()) {
    const std::lock_guard lock(state_->mutex());
    CLEW_TRY(state_->fails_before(line_));
    return state_->or_failed(what());
  }

  std::shared_ptr<FaultyState> state_;  // An end may outlive the hub.
  FaultyLine line_;
  FileDescriptor either_;  // An epoll set of both that can be readable.
};

}  // namespace

FaultyHub::FaultyHub(uint64_t seed, Faults faults)
    : state_(std::make_shared<FaultyState>(seed, faults)) {}
FaultyHub::~FaultyHub() = default;

std::unique_ptr<Bus> FaultyHub::connect(std::string_view name, Permissions permissions) {
  return std::make_unique<FaultyEnd>(state_, std::string(name), std::move(permissions));
}

void FaultyHub::step() {
  const std::lock_guard lock(state_->mutex());
  state_->step();
}

void FaultyHub::heal() {
  const std::lock_guard lock(state_->mutex());
  state_->heal();
}

void FaultyHub::cut(std::string_view name, bool is_cut) {
  const std::lock_guard lock(state_->mutex());
  state_->cut(name, is_cut);
}

void FaultyHub::lose_disk() {
  state_->hub().lose_disk();
}

void FaultyHub::lose_end(uint64_t entries, bool knows_ids) {
  state_->hub().lose_end(entries, knows_ids);
}

void FaultyHub::set_reachable(bool is_reachable) {
  state_->hub().set_reachable(is_reachable);
}

}  // namespace clew::cluster
