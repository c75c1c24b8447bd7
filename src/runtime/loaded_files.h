// Which files libraries were loaded from, as they were then.
#pragma once

namespace tenon::runtime {

/// Takes note of a file that has just been loaded (`fresh`), or whose library the loader had
/// already: then it answers whether the file is still what it was when it was noted.
bool NoteLoaded(int fd, bool fresh);

}  // namespace tenon::runtime
