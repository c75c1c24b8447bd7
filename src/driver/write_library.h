// Libraries and objects as files, their weights written straight into them; modules of WebAssembly.
#pragma once

#include <vector>

#include "artifact/link.h"
#include "artifact/params.h"
#include "driver/outputs.h"
#include "support/expected.h"

namespace tenon::driver {

/// What to link of built code; nothing about weights.
artifact::LinkRequest RequestLink(const Built& built, artifact::OutputKind kind);

/// Errors: what makes a device's code is not on this machine; a library would call what nobody
/// defines.
Status CheckLinks(const Built& built, artifact::OutputKind kind);

/// A library or an object of code without weights. soname: as artifact::LinkRequest has it.
Expected<std::string> LinkInMemory(const Built& built, artifact::OutputKind kind,
                                   const std::string& soname);

/// Errors: those of CheckLinks and of the linker; more weights than the file can hold.
Expected<Files> PrepareLibrary(const Built& built, artifact::OutputKind kind, const Output& output);

/// What a file of weights says about each of them.
std::vector<artifact::ParamEntry> WeightTable(const Built& built);

}  // namespace tenon::driver
