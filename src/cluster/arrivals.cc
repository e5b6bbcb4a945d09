// SPDX-License-Identifier: Apache-2.0
#include "cluster/arrivals.h"

#include <utility>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace clew::cluster {
namespace {

size_t size_of(const Message& message) {
  return message.subject.size() + message.reply.size() + message.bytes.size();
}

}  // namespace

// No descriptor is left: descriptor() is -1, and whoever waits for it is told by the system.
Arrivals::Arrivals() : event_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

void Arrivals::put(Message message) {
  const std::lock_guard lock(mutex_);
  const size_t size = size_of(message);
  if (messages_.size() >= kArrivalsMax || bytes_ + size > kArrivalBytesMax) {
    ++dropped_;
    return;
  }
  bytes_ += size;
  messages_.push_back(std::move(message));
  ring_locked();
}

void Arrivals::complain(std::string complaint) {
  const std::lock_guard lock(mutex_);
  if (complaints_.size() < kComplaintsMax) {
    complaints_.push_back(std::move(complaint));
  } else {
    ++complaints_left_out_;
  }
  ring_locked();
}

void Arrivals::ring() {
  const std::lock_guard lock(mutex_);
  ring_locked();
}

std::optional<Message> Arrivals::next() {
  const std::lock_guard lock(mutex_);
  if (messages_.empty()) {
    eventfd_t count = 0;
    if (std::exchange(is_ringing_, false)) (void)eventfd_read(event_.get(), &count);
    return std::nullopt;
  }
  Message message = std::move(messages_.front());
  messages_.pop_front();
  bytes_ -= size_of(message);
  return message;
}

std::vector<std::string> Arrivals::take_complaints() {
  const std::lock_guard lock(mutex_);
  if (const uint64_t left_out = std::exchange(complaints_left_out_, 0); left_out > 0)
    complaints_.push_back(fmt::format("and {} more", left_out));
  return std::exchange(complaints_, {});
}

uint64_t Arrivals::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void Arrivals::ring_locked() {
  if (std::exchange(is_ringing_, true)) return;
  (void)eventfd_write(event_.get(), 1);
}

}  // namespace clew::cluster
