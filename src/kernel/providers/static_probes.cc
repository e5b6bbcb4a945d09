// SPDX-License-Identifier: Apache-2.0
#include "kernel/providers/static_probes.h"

#include "target/catalog.h"

namespace clew::kernel {

StaticProbeFiles::File& StaticProbeFiles::file_of(const target::ProcessModule& module) {
  const Key key(module.device_major, module.device_minor, module.inode);
  const auto [place, is_new] = files_.try_emplace(key);
  if (!is_new || !module.problem.empty()) return place->second;
  auto probes = target::read_static_probes(module.open_path);
  if (probes) place->second.probes = std::move(*probes);
  return place->second;
}

const std::vector<target::StaticProbe>& StaticProbeFiles::of(const target::ProcessModule& module) {
  return file_of(module).probes;
}

const std::string& StaticProbeFiles::function_of(const target::ProcessModule& module,
                                                 size_t probe) {
  File& file = file_of(module);
  if (!file.functions.empty()) return file.functions[probe];
  file.functions.resize(file.probes.size());
  const auto image =
      target::ModuleImage::read(module.open_path, target::default_catalog_options().read);
  if (!image) return file.functions[probe];
  for (size_t i = 0; i < file.probes.size(); ++i) {
    const target::Function* function = image->function_covering(file.probes[i].address);
    const bool has_symbol =
        function != nullptr && function->origin != target::FunctionOrigin::UnwindEntry;
    if (has_symbol) file.functions[i] = function->names[0].linkage;
  }
  return file.functions[probe];
}

}  // namespace clew::kernel
