// `--format obj`: everything of a library as one relocatable object, for linking into somebody's
// program.
#pragma once

#include <string>

#include "artifact/link.h"
#include "support/expected.h"

namespace tenon::artifact {

/// Links the objects, the core and the reserved weights into one object that needs libc alone. Only
/// request.exports stay global, hidden unless request.visible, so several such objects fit into one
/// program as long as their exports differ, and into several libraries of one even where they do
/// not. Weights larger than 1 GiB are refused: the program's own linker would have to
/// place them within reach of its code. The weight section is empty, as in LinkSharedLibrary;
/// LibraryWriter fills it. Where there is no core for the triple, its functions stay undefined: the
/// program has to link libtenon_core.a besides. request.nodelete, soname and params_name do not
/// apply.
Expected<std::string> LinkRelocatable(const LinkRequest& request);

}  // namespace tenon::artifact
