// SPDX-License-Identifier: Apache-2.0
#include "engine/names.h"

#include <array>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

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

}  // namespace

ProcessNames::ProcessNames(pid_t pid, target::Catalog& catalog,
                           const std::vector<plan::SiteNames>& names)
    : pid_(pid), catalog_(catalog), names_(names) {
  constexpr size_t kHostNameMax = 256;
  std::array<char, kHostNameMax> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) host_ = host.data();
  process_names_[0] = process_name_of(pid);
}

void ProcessNames::add_child(uint64_t process, pid_t pid) {
  if (!children_.emplace(process, pid).second) return;
  std::string name = process_name_of(pid);
  // One that has ended already was a fork of the first.
  process_names_[process] = name.empty() ? process_names_[0] : std::move(name);
}

void ProcessNames::refresh_threads() {
  const Expected<std::vector<pid_t>> threads = target::list_threads(pid_);
  if (!threads) return;
  for (const pid_t tid : *threads) {
    std::string comm = read_comm(pid_, static_cast<uint64_t>(tid));
    if (!comm.empty()) thread_names_[static_cast<uint64_t>(tid)] = std::move(comm);
  }
}

void ProcessNames::describe(RecordedProcess& into) const {
  for (const auto& [process, name] : process_names_) {
    const auto child = children_.find(process);
    into.incarnations[process] = {.pid = child == children_.end() ? pid_ : child->second,
                                  .name = name};
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

std::string ProcessNames::symbol(uint64_t address) {
  const auto found = symbols_.find(address);
  if (found != symbols_.end()) return found->second;
  const std::optional<target::SymbolisedAddress> symbol = catalog_.symbolise(address);
  return symbols_[address] = symbol ? symbol->text : fmt::format("{:#x}", address);
}

}  // namespace clew::engine
