// SPDX-License-Identifier: Apache-2.0
// For tests: a file with a compiler's guards, as its recording is read.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "abi/recorder.h"
#include "recorder/guard_paths.h"
#include "recorder/guard_walk.h"

namespace clew::recorder {

struct GuardModule {
  std::unique_ptr<target::ModuleImage> image;
  std::unique_ptr<RecordedModule> recorded;
  std::unique_ptr<ModulePaths> paths;
  std::unique_ptr<GuardPaths> guards;

  static Expected<GuardModule> read(const std::string& file) {
    GuardModule module;
    module.image = std::make_unique<target::ModuleImage>(CLEW_TRY(target::ModuleImage::read(file)));
    module.recorded =
        CLEW_TRY(RecordedModule::make(*module.image, {.front_end = FrontEnd::Guards}));
    module.paths =
        std::make_unique<ModulePaths>(module.recorded->facts(), module.recorded->proof(),
                                      module.recorded->copied(), module.recorded->tiling());
    module.guards = CLEW_TRY(GuardPaths::of(*module.recorded, *module.paths, *module.image));
    return module;
  }

  [[nodiscard]] WalkedModule walked() const {
    return {.paths = paths.get(), .first_id = 1, .guards = guards.get()};
  }
  [[nodiscard]] uint32_t functions() const {
    return static_cast<uint32_t>(recorded->proof().proved.size());
  }
  [[nodiscard]] uint32_t blocks(uint32_t function) const {
    return static_cast<uint32_t>(recorded->proof().proved[function].blocks.blocks().size());
  }
  // What a guard's probe writes of its place (guards.h).
  [[nodiscard]] uint32_t word_of(uint32_t function, uint32_t block) const {
    const uint64_t behind = guards->block(function, block).end;
    return abi::dag_record(1) + static_cast<uint32_t>(behind - recorded->guards()->text().address);
  }
};

// And of the stack pointer, which is there as the call has pushed its return address.
inline uint32_t frame_word(int64_t stack) {
  return abi::kFrameWord | (static_cast<uint32_t>(stack) << 5 >> 8);
}

}  // namespace clew::recorder
