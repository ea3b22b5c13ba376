package Shelf::Box; # DEF package Shelf::Box
sub open { # DEF function open
}
