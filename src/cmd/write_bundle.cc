// SPDX-License-Identifier: Apache-2.0
#include "cmd/write_bundle.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace clew::cmd {

Expected<void> write_bundle(recorder::BundleRequest request, Console& console) {
  request.progress = [&console](std::string_view text) { console.progress(text); };
  const recorder::BundleContents bundled = CLEW_TRY(recorder::write_bundle(request));
  for (const std::string& problem : bundled.problems)
    console.warning(problem);
  console.made(fmt::format("bundled: {} (modules: {}, debug files: {}, sources: {})",
                           request.folder, bundled.modules, bundled.debug_files, bundled.sources));
  if (bundled.problems.empty()) return {};
  return fail(ErrorCode::Io, fmt::format("the bundle {} is not complete", request.folder));
}

}  // namespace clew::cmd
