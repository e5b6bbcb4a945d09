// SPDX-License-Identifier: Apache-2.0
// Test support: what tests do with programs on a Machine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "isa/program.h"
#include "machine.h"

namespace clew::native {

// A window offset that the tests' programs do not use.
inline constexpr uint32_t kResultOffset = 3000;

// The same program, but each exit stores r0 at kResultOffset: native bodies have no result.
isa::Program storing_result(const isa::Program& program);

// Passes every constant that is moved into a register through a frame word that nobody else uses,
// so that the translator cannot know it.
isa::Program without_constants(const isa::Program& program);

uint64_t word_at(std::span<const uint8_t> window, uint32_t offset);

std::unique_ptr<Machine> machine(const MachineOptions& options = {});

// Every register its own value, so that a register that is not restored shows.
RegisterFile marked_registers();

// Translates, verifies and installs, or says why not.
std::string prepare(Machine& on, const isa::Program& program,
                    std::span<const uint64_t> site_constants = {});

// What an environment variable says, or the usual: for runs with other seeds.
uint64_t number_of(const char* variable, uint64_t usual);

// The trap flag, as popf sets it.
void set_stepping(bool on);

// Kills the process at any system call other than those of memory, exit and signals' return.
bool forbid_system_calls();

}  // namespace clew::native
