// A target needs a source to own precompiled headers.
