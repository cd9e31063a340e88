//! Nothing here: see the tests beside this folder.
