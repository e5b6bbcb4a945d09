// SPDX-License-Identifier: Apache-2.0
#include "engine/owners.h"

#include <array>

#include <pwd.h>

#include "target/belonging.h"
#include "target/process.h"

namespace clew::engine {
namespace {

constexpr size_t kKnownMax = 65536;

std::string user_name(uint32_t uid) {
  std::array<char, 16384> room{};
  passwd entry{};
  passwd* found = nullptr;
  const int status = getpwuid_r(uid, &entry, room.data(), room.size(), &found);
  return status == 0 && found != nullptr ? found->pw_name : std::to_string(uid);
}

void put(const target::Belonging& belonging, target::ContainerNames& names, answer::Owner& into) {
  into.container = names.shown(belonging);
  into.unit = belonging.unit;
  into.cgroup = belonging.cgroup;
}

// Numbers that come and go for days do not fill the memory.
template <typename Map>
void make_room(Map& known) {
  if (known.size() >= kKnownMax) known.clear();
}

}  // namespace

answer::Owner Owners::of_process(pid_t pid) {
  answer::Owner owner;
  if (const auto belonging = target::belonging_of(pid)) put(*belonging, containers_, owner);
  if (const auto process = target::read_process(pid)) owner.uid = process->uid;
  return owner;
}

const answer::Owner& Owners::of_group(uint64_t number) {
  const auto known = by_group_.find(number);
  if (known != by_group_.end()) return known->second;
  make_room(by_group_);
  answer::Owner& owner = by_group_[number];
  if (const auto path = groups_.path_of(number))
    put(target::belonging_in(*path), containers_, owner);
  return owner;
}

const answer::Owner& Owners::of_user(uint32_t uid) {
  const auto known = by_user_.find(uid);
  if (known != by_user_.end()) return known->second;
  make_room(by_user_);
  answer::Owner& owner = by_user_[uid];
  owner.uid = uid;
  if (uid != answer::kNoUser) owner.user = user_name(uid);
  return owner;
}

uint64_t Owners::group_of(pid_t pid) const {
  const auto belonging = target::belonging_of(pid);
  return belonging ? groups_.number_of(belonging->cgroup) : 0;
}

}  // namespace clew::engine
