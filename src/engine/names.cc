// SPDX-License-Identifier: Apache-2.0
#include "engine/names.h"

#include <array>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "target/node_name.h"
#include "target/process.h"

namespace clew::engine {
namespace {

std::string read_comm(pid_t pid, uint64_t tid) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/comm", pid, tid));
  std::string comm;
  std::getline(file, comm);
  return comm;
}

std::string process_name_of(pid_t pid) {
  const Expected<target::Process> process = target::read_process(pid);
  return process ? target::program_name(*process) : "";
}

// mov $15, %rax; syscall: where the C library lets the kernel return to from a handler.
bool is_signal_return(pid_t pid, uint64_t address) {
  constexpr std::array<uint8_t, 9> kReturn = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  std::array<uint8_t, kReturn.size()> code{};
  return target::read_memory(pid, address, code).has_value() && code == kReturn;
}

}  // namespace

ProcessNames::ProcessNames(pid_t pid, target::Catalog& catalog,
                           const std::vector<plan::SiteNames>& names)
    : pid_(pid), catalog_(catalog), made_code_(pid), names_(names) {
  constexpr size_t kHostNameMax = 256;
  std::array<char, kHostNameMax> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) host_ = host.data();
  process_names_[0] = process_name_of(pid);
  node_names_[0] = target::node_name_of(pid);
  owners_[0] = known_owners_.of_process(pid);
}

void ProcessNames::add_child(uint64_t process, pid_t pid) {
  if (!children_.emplace(process, pid).second) return;
  // Its rows are of the program that it was forked from: another one that it runs has no probes.
  process_names_[process] = process_names_[0];
  node_names_[process] = target::node_name_of(pid);
  // A child that has gone was in its parent's group, and had its user.
  const answer::Owner owner = known_owners_.of_process(pid);
  owners_[process] = owner.uid == answer::kNoUser ? owners_[0] : owner;
}

void ProcessNames::refresh_threads() {
  const Expected<std::vector<pid_t>> threads = target::list_threads(pid_);
  if (!threads) return;
  for (const pid_t tid : *threads) {
    std::string comm = read_comm(pid_, static_cast<uint64_t>(tid));
    if (!comm.empty()) thread_names_[static_cast<uint64_t>(tid)] = std::move(comm);
  }
}

void ProcessNames::describe(session::RecordedProcess& into) {
  for (const auto& [process, name] : process_names_) {
    const auto child = children_.find(process);
    const auto found = node_names_.find(process);
    into.incarnations[process] = {.pid = child == children_.end() ? pid_ : child->second,
                                  .name = name,
                                  .node_name = found == node_names_.end() ? "" : found->second,
                                  .owner = owner(query::Field::User, process)};
  }
  into.sites = names_;
  into.threads.insert(thread_names_.begin(), thread_names_.end());
  into.symbols.insert(symbols_.begin(), symbols_.end());
}

std::string ProcessNames::function(uint64_t index) {
  return index < names_.size() ? names_[index].function : std::string();
}

std::string ProcessNames::module(uint64_t index) {
  return index < names_.size() ? names_[index].module : std::string();
}

std::string ProcessNames::probe(uint64_t index) {
  return index < names_.size() ? names_[index].probe : std::string();
}

int64_t ProcessNames::pid(uint64_t process) {
  if (process == 0) return pid_;
  const auto found = children_.find(process);
  return found == children_.end() ? 0 : found->second;
}

std::string ProcessNames::process_name(uint64_t process) {
  const auto found = process_names_.find(process);
  return found == process_names_.end() ? process_names_[0] : found->second;
}

std::string ProcessNames::thread_name(uint64_t process, uint64_t tid) {
  const auto found = thread_names_.find(tid);
  if (found != thread_names_.end()) return found->second;
  std::string comm = read_comm(static_cast<pid_t>(pid(process)), tid);
  return thread_names_[tid] = comm.empty() ? fmt::format("thread {}", tid) : comm;
}

std::string ProcessNames::host() {
  return host_;
}

std::string ProcessNames::node_name(uint64_t process) {
  const auto found = node_names_.find(process);
  return found == node_names_.end() ? "" : found->second;
}

const answer::Owner& ProcessNames::owner(query::Field field, uint64_t process) {
  answer::Owner& owner = owners_[process];
  if (field == query::Field::User) owner.user = known_owners_.of_user(owner.uid).user;
  return owner;
}

std::string ProcessNames::symbol(uint64_t address) {
  const auto found = symbols_.find(address);
  if (found != symbols_.end()) return found->second;
  // Behind a call that does not return there may be another function already, so the call's last
  // byte is named. A handler of signals returns to code that nobody called.
  return symbols_[address] = name_of(address, is_signal_return(pid_, address) ? 0 : 1);
}

std::string ProcessNames::code(uint64_t address) {
  return name_of(address, 0);
}

aggregate::Stack ProcessNames::stack(std::span<const uint64_t> words) {
  return stacks_ == nullptr ? aggregate::Stack() : stacks_->named(words);
}

std::string ProcessNames::name_of(uint64_t address, uint64_t back) {
  std::string name;
  uint64_t offset = 0;
  const std::optional<target::SymbolisedAddress> symbol = catalog_.symbolise(address - back);
  if (symbol) {
    name = symbol->text;
    offset = symbol->offset;
    if (offset != 0) name.resize(name.rfind('+'));
  } else {
    const std::optional<target::PerfMapPlace> place = made_code_.find(address - back);
    if (!place) return fmt::format("{:#x}", address);
    name = fmt::format("{}!{}", target::kMadeCode, place->function);
    offset = place->offset_bytes;
  }
  offset += back;
  return offset == 0 ? name : fmt::format("{}+{:#x}", name, offset);
}

}  // namespace clew::engine
