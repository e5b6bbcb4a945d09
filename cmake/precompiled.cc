// SPDX-License-Identifier: Apache-2.0
// Nothing: CMake precompiles headers for a target, and a target has a source (precompiled.cmake).
