// SPDX-License-Identifier: Apache-2.0
#include "recorder/places.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace clew::recorder {

namespace {

// An optimiser moves what a caller does, as to compute an argument, among the instructions of the
// callee that it has inlined: the line is then that of the call, which is the caller's.
void drop_inner_of_line(std::vector<Frame>& frames) {
  const auto caller =
      std::find_if(std::next(frames.begin()), frames.end(), [&](const Frame& frame) {
        return frame.file == frames.front().file && frame.line == frames.front().line;
      });
  if (caller != frames.end()) frames.erase(frames.begin(), caller);
}

void put_in_folder(std::vector<Frame>& frames, const std::string& folder) {
  if (folder.empty()) return;
  for (Frame& frame : frames) {
    if (!frame.file.empty() && frame.file.front() != '/') frame.file = folder + '/' + frame.file;
  }
}

std::vector<Frame> frames_at(ReadModule& module, uint64_t address) {
  std::vector<Frame> frames;
  if (module.debug) {
    for (target::SourceCall& call : module.debug->calls_at(address)) {
      frames.push_back({.function = std::move(call.function),
                        .file = std::move(call.place.file),
                        .line = call.place.line,
                        .is_inlined = call.is_inlined});
    }
  }
  if (!frames.empty()) {
    drop_inner_of_line(frames);
    put_in_folder(frames, module.debug->directory_at(address));
    return frames;
  }
  const target::Function* const function = module.image->function_covering(address);
  frames.push_back({.function = function == nullptr
                                    ? fmt::format("{}+{:#x}", module.name(), address)
                                    : std::string(function->name)});
  return frames;
}

}  // namespace

uint32_t Places::at(ReadModule& module, uint64_t address) {
  return number_of({std::string(module.name()), frames_at(module, address)});
}

uint32_t Places::nowhere(uint64_t pc) {
  return number_of({"", {{.function = fmt::format("{:#x}", pc)}}});
}

uint32_t Places::number_of(Place place) {
  std::string key = place.module;
  for (const Frame& frame : place.frames) {
    key += fmt::format("\n{}\n{}:{}{}", frame.function, frame.file, frame.line,
                       frame.is_inlined ? "i" : "");
  }
  const auto known = numbers_.emplace(std::move(key), static_cast<uint32_t>(places_.size()));
  if (known.second) places_.push_back(std::move(place));
  return known.first->second;
}

std::span<const Piece> Places::pieces_of(const Step& step) {
  ReadModule& module = modules_.walked(step.module);
  const copy::Facts& facts = module.recorded->facts();
  const copy::Proved& proved = module.recorded->proof().proved[step.function];
  const code::Block& block = proved.blocks.blocks()[step.block];
  pieces_.resize(modules_.walked().size());
  const auto known = pieces_[step.module].emplace(block.begin, std::vector<Piece>());
  std::vector<Piece>& pieces = known.first->second;
  if (!known.second) return pieces;
  for (auto at = facts.code.at(block.begin); at && at->address < block.end;
       at = facts.code.at(at->end())) {
    const uint32_t place = this->at(module, at->address);
    if (pieces.empty() || pieces.back().place != place) pieces.push_back({at->address, place});
  }
  return pieces;
}

}  // namespace clew::recorder
