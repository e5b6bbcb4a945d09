// SPDX-License-Identifier: Apache-2.0
// site_survey FILE…: a developer's command. Prints, for ELF files, how many functions' entries and
// exits can take a probe without a trap, and why the others cannot. --list names those. Last, how
// many that could be taken are not, as a uprobe that somebody sets later would end the process
// (inline/later_uprobe.h): by what the probe reads.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "code/image_text.h"
#include "code/module_code.h"
#include "code/windows.h"
#include "target/module_image.h"

namespace {

using clew::code::Plan;
using clew::code::Request;
using clew::code::RequestKind;
using clew::code::WindowClass;

// Of the processor: others may use the machine.
double milliseconds_since(std::clock_t start) {
  return 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::vector<Request> all_requests(const clew::target::ModuleImage& image) {
  std::vector<Request> requests;
  for (const RequestKind kind : {RequestKind::Entry, RequestKind::Exits}) {
    for (const clew::target::Function& function : image.functions()) {
      requests.push_back({kind, function.address});
    }
  }
  return requests;
}

void print_share(const char* what, size_t taken, size_t all) {
  fmt::print("  {:<8} {:6} of {:6} = {:6.2f} %\n", what, taken, all,
             all == 0 ? 100.0 : 100.0 * static_cast<double>(taken) / static_cast<double>(all));
}

void print_refusals(const Plan& plan, size_t functions, RequestKind kind) {
  std::map<std::string_view, unsigned> counts;
  for (const auto& refusal : plan.refusals) {
    const bool is_entry = refusal.request < functions;
    if (is_entry == (kind == RequestKind::Entry)) ++counts[name(refusal.reason)];
  }
  const unsigned parts = counts[name(clew::code::RefusalReason::ColdPart)];
  counts.erase(name(clew::code::RefusalReason::ColdPart));
  size_t refused = 0;
  for (const auto& [reason, count] : counts)
    refused += count;
  const size_t all = functions - parts;
  print_share(kind == RequestKind::Entry ? "entries" : "exits", all - refused, all);
  for (const auto& [reason, count] : counts)
    fmt::print("    {:<24} {:6}\n", reason, count);
}

void print_windows(const Plan& plan) {
  std::array<size_t, 4> classes{};
  size_t keeping = 0;
  for (const auto& window : plan.windows) {
    ++classes[static_cast<size_t>(window.window_class)];
    if (window.kept_bytes != 0) ++keeping;
  }
  fmt::print("  windows that keep their first instruction  {}\n", keeping);
  const auto keeping_flags = std::count_if(plan.points.begin(), plan.points.end(),
                                           [](const auto& point) { return point.keeps_flags; });
  fmt::print("  points that keep flags  {}\n", keeping_flags);
  fmt::print("  windows  {} own bytes, {} with padding, {} by a short jump; {} points\n",
             classes[0], classes[1], classes[2], plan.points.size());
}

struct Usual {
  const char* name;
  RequestKind kind;
  clew::code::ProbeReads reads;
};

std::vector<Usual> usual_probes() {
  using clew::abi::Register;
  using clew::abi::RegisterSet;
  clew::code::ProbeReads first;
  first.registers.add(Register::Rdi);
  clew::code::ProbeReads text = first;
  text.memory = true;
  const RegisterSet arguments(0x03c6);  // rcx, rdx, rsi, rdi, r8, r9
  return {{"counts, elapsed", RequestKind::Entry, clew::code::kReadsNothing},
          {"arg0", RequestKind::Entry, first},
          {"text at arg0", RequestKind::Entry, text},
          {"six arguments", RequestKind::Entry, {.registers = arguments}},
          {"everything", RequestKind::Entry, clew::code::kReadsEverything},
          {"returns", RequestKind::Exits, clew::code::kReadsNothing}};
}

void list_refusals(const Plan& plan, const clew::target::ModuleImage& image, const char* probe) {
  const auto functions = image.functions();
  for (const auto& refusal : plan.refusals) {
    const auto& function = functions[refusal.request % functions.size()];
    const bool is_entry = refusal.request < functions.size();
    const char* const what = probe != nullptr ? probe : is_entry ? "entry" : "exits";
    fmt::print("{:#x} {} {}: {} {:#x}\n", function.address, function.name, what,
               name(refusal.reason), refusal.address);
  }
}

void print_later_uprobes(const clew::code::ModuleCode& code, const clew::target::ModuleImage& image,
                         bool list) {
  using clew::code::LateUprobeDanger;
  for (const Usual& usual : usual_probes()) {
    std::vector<Request> requests;
    for (const clew::target::Function& function : image.functions())
      requests.push_back({usual.kind, function.address, usual.reads});
    const size_t all = requests.size();
    const Plan allowed = plan_windows(code, requests, {}, LateUprobeDanger::Allowed);
    const Plan plan = plan_windows(code, requests, {}, LateUprobeDanger::Refused);
    const size_t more = plan.refusals.size() - allowed.refusals.size();
    fmt::print("  for later uprobes  {:16} {:6} of {:6} = {:6.2f} %\n", usual.name, more,
               all - allowed.refusals.size(),
               100.0 * static_cast<double>(more) /
                   static_cast<double>(std::max<size_t>(all - allowed.refusals.size(), 1)));
    if (list) list_refusals(plan, image, usual.name);
  }
}

int survey(const std::string& path, bool list) {
  const auto image = clew::target::ModuleImage::read(path);
  if (!image) {
    fmt::print(stderr, "site_survey: error: {}\n", image.error().message);
    return 1;
  }
  const auto text = clew::code::text_of(*image);
  if (!text) {
    fmt::print(stderr, "site_survey: error: {}\n", text.error().message);
    return 1;
  }
  const std::clock_t start = std::clock();
  const clew::code::ModuleCode code = clew::code::analyse(*text);
  const double analysed_ms = milliseconds_since(start);
  const std::clock_t planning = std::clock();
  const std::vector<Request> requests = all_requests(*image);
  const Plan plan = plan_windows(code, requests);
  const double planned_ms = milliseconds_since(planning);
  fmt::print("{}: analysed in {:.1f} ms, planned in {:.1f} ms\n", path, analysed_ms, planned_ms);
  print_refusals(plan, image->functions().size(), RequestKind::Entry);
  print_refusals(plan, image->functions().size(), RequestKind::Exits);
  print_windows(plan);
  print_later_uprobes(code, *image, list);
  if (list) list_refusals(plan, *image, nullptr);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  bool list = false;
  int status = argc < 2 ? 2 : 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--list") == 0) {
      list = true;
    } else {
      status |= survey(argv[i], list);
    }
  }
  if (argc < 2) fmt::print(stderr, "usage: site_survey [--list] FILE...\n");
  return status;
}
