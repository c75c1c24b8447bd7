// What can be made of built code: one row of output_forms.def for each form, whoever asks for it
// (--format and --emit of the command line, Library::Save and GetSource of the façades).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "artifact/temporary_library.h"
#include "support/atomic_file.h"
#include "support/expected.h"
#include "target/target.h"

namespace tenon::driver {

struct Built;

/// Every form of a device's code, each in a file with the form as one more suffix.
inline constexpr const char* kDeviceForms = "device";
/// Text that whoever asks for the output has.
inline constexpr const char* kGivenText = "given";

struct Output {
  std::string form;  // the name of a row, a form of a device's code ("ptx"), or one of the above
  std::string path;
  std::string params = {};  // of a library or C source: the file for its weights; "": they are in
                            // it
  std::string text = {};    // of kGivenText
};

/// Forms of text that this code has, by name: a device's first.
std::vector<std::string> CodeForms(const Built& built);

/// The text of the code in a form, by its name or suffix; "": the one that says most of this
/// target's code. Errors list the forms that there are.
Expected<std::string> MakeCode(const Built& built, std::string_view form);

/// An output of any form in memory. Weights can only go to files.
Expected<std::string> MakeOutput(const Built& built, std::string_view form);

/// Whether the code calls C functions that are not part of it.
bool CallsOthers(const Built& built);

/// The shared library in memory, for this process: such functions are found among those that the
/// process has (of the C and the maths library, of what was loaded for everybody).
Expected<std::string> MakeLibraryHere(const Built& built);

/// Writes the files, and puts them in their places together when all of them are whole. The
/// request's new folder is made first, and is gone again where that fails.
Status WriteOutputs(const Built& built, const std::vector<Output>& outputs);

/// Files of an output that are whole, in the order in which they are put in their places.
using Files = std::vector<AtomicFile>;

Expected<Files> PrepareFile(const std::string& path, std::string_view bytes);

/// The form that a file's name asks for by its suffix.
Expected<std::string> FormOfFile(const Built& built, const std::string& path);

/// A library is the target's; a name that says otherwise is a mistake.
Status CheckLibraryFile(const std::string& path, const Target& target);

/// The code in this process; `exports` are the symbols that can be found. The code must be for this
/// machine, without weights.
Expected<artifact::TemporaryLibrary> LoadBuilt(const Built& built,
                                               const std::vector<std::string>& exports);

}  // namespace tenon::driver
