// SPDX-License-Identifier: Apache-2.0
// Beats of so many nodes that run nothing, once a second each and evenly in it, over some
// connections to a real server of NATS, to a root that others measure:
//   cluster_beats URL NODES CONNECTIONS SECONDS
// Says "begin" when all nodes are known, "end" behind the last beat, and then, as JSON, how many
// were sent and how many the root has answered.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cluster/bus_nats.h"
#include "cluster/clock.h"
#include "cluster/message.h"
#include "cluster/subjects.h"
#include "cluster/wait.h"

namespace clew::cluster {
namespace {

constexpr int64_t kAnswersWait = 3 * kSecond;

class Beats {
 public:
  Beats(const std::string& url, size_t nodes, size_t connections)
      : subjects_("default"), nodes_(nodes), listener_(connected(url)) {
    for (size_t i = 0; i < connections; ++i)
      ends_.push_back(connected(url));
    if (!listener_->subscribe(subjects_.control("*"))) std::exit(1);
  }

  // Each node once a second.
  void send(int64_t seconds) {
    const int64_t begin = clock_.monotonic_ns();
    const auto count = static_cast<int64_t>(nodes_);
    for (int64_t i = 0; i < count * seconds; ++i) {
      const int64_t due = begin + i * kSecond / count;
      while (clock_.monotonic_ns() < due)
        hear(due);
      const auto node = static_cast<size_t>(i % count);
      const Beat said{.node = fmt::format("n{}", node), .version = "bench"};
      const auto sent =
          ends_[node % ends_.size()]->publish(subjects_.beat(said.node), to_bytes(said));
      sent_ += sent ? 1 : 0;
    }
  }
  void wait_for_answers() {
    const int64_t end = clock_.monotonic_ns() + kAnswersWait;
    while (answered_ < sent_ && clock_.monotonic_ns() < end)
      hear(end);
  }
  void forget() { sent_ = answered_ = 0; }
  void tell() const {
    fmt::print("{{\"sent\": {}, \"answered\": {}, \"dropped\": {}}}\n", sent_, answered_,
               listener_->dropped());
  }

 private:
  static std::unique_ptr<Bus> connected(const std::string& url) {
    auto bus = connect_nats({.url = url, .name = "beats"});
    if (bus) return std::move(*bus);
    fmt::print(stderr, "{}\n", bus.error().message);
    std::exit(1);
  }
  void hear(int64_t until_ns) {
    wait_for({{.fd = listener_->descriptor(), .events = POLLIN, .revents = 0}}, until_ns);
    while (listener_->next())
      ++answered_;
  }

  MachineClock clock_;
  Subjects subjects_;
  size_t nodes_;
  std::unique_ptr<Bus> listener_;
  std::vector<std::unique_ptr<Bus>> ends_;
  uint64_t sent_ = 0;
  uint64_t answered_ = 0;
};

void say(const char* word) {
  std::puts(word);
  (void)std::fflush(stdout);
}

}  // namespace
}  // namespace clew::cluster

int main(int count, char** arguments) {
  if (count != 5) return 2;
  clew::cluster::Beats beats(arguments[1], std::strtoull(arguments[2], nullptr, 10),
                             std::strtoull(arguments[3], nullptr, 10));
  beats.send(2);
  beats.wait_for_answers();
  beats.forget();
  clew::cluster::say("begin");
  beats.send(std::strtoll(arguments[4], nullptr, 10));
  clew::cluster::say("end");
  beats.wait_for_answers();
  beats.tell();
}
