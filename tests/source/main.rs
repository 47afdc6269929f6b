//! Rules on the source that no lint knows.

mod conformance_list;
mod dependents;
mod layers;
mod memory_model;
mod modules;
mod pages;
mod rules;
mod words;
