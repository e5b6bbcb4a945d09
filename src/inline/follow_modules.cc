// SPDX-License-Identifier: Apache-2.0
// The probe at the loader's notice to debuggers: the thread that loads a module tells us and waits
// for our answer before the module's constructors run (runtime/loader.cc).
#include <fmt/format.h>

#include "base/log.h"
#include "code/image_text.h"
#include "code/module_code.h"
#include "code/windows.h"
#include "inline/attachment_state.h"
#include "inline/loader.h"
#include "target/module_image.h"
#include "target/process.h"

namespace clew::inline_ {
namespace {

Expected<target::ProcessModule> module_at(pid_t pid, uint64_t address) {
  for (target::ProcessModule& module : CLEW_TRY(target::read_modules(pid))) {
    if (module.contains(address)) return std::move(module);
  }
  return fail(ErrorCode::NotFound, fmt::format("no module at {:#x}", address));
}

}  // namespace

Expected<void> Attachment::follow_modules() {
  State& state = *state_;
  const auto loader = read_loader_state(state.pid);
  if (!loader || loader->notice_address == 0) return {};
  const target::ProcessModule module = CLEW_TRY(module_at(state.pid, loader->notice_address));
  const target::ModuleImage image = CLEW_TRY(target::ModuleImage::read(module.open_path));
  const code::ModuleCode code = code::analyse(CLEW_TRY(code::text_of(image)));
  const code::Request request = {.kind = code::RequestKind::Entry,
                                 .address = loader->notice_address - module.load_bias};
  const SiteJournal journal(state.arena);
  std::vector<code::Window> installed;
  for (const auto& [address, site] : journal.by_address()) {
    const abi::SiteRecord& record = journal.site(site);
    if (record.load_bias == module.load_bias) installed.push_back(window_of(record));
  }
  const code::Plan plan = plan_windows(code, {&request, 1}, installed);
  if (plan.windows.empty()) {
    return fail(ErrorCode::Refused,
                fmt::format("the loader of process {} cannot be followed: {}", state.pid,
                            plan.refusals.empty() ? std::string_view("no window")
                                                  : sentence(plan.refusals.front().reason)));
  }
  abi::ArenaHeader& header = state.arena.header();
  header.loader_wait_ms = static_cast<uint32_t>(state.options.loader_timeout.count());
  const std::vector<BodyShape> bodies(plan.points.size());
  log_step(state.pid, "its loader will wait for us, {} ms at most", header.loader_wait_ms);
  const InstallReport report = CLEW_TRY(install_hook(state, {.plan = &plan,
                                                             .load_bias = module.load_bias,
                                                             .bodies = bodies,
                                                             .text = module.executable_ranges}));
  if (report.windows == 0) {
    return fail(ErrorCode::Refused,
                fmt::format("the loader of process {} cannot be followed", state.pid));
  }
  __atomic_fetch_or(&state.arena.target_page().loader_sessions, 1U << state.geometry.session,
                    __ATOMIC_ACQ_REL);
  return {};
}

}  // namespace clew::inline_
