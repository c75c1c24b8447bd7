// Whether a file took what was written into it.
#pragma once

#include "support/file.h"

namespace tenon {

/// Says now what may be wrong with the bytes written so far, which some file systems find out late:
/// so that of several files none is put in its place where one of them is not whole.
Status CheckWritten(const AtomicFile& file);

}  // namespace tenon
