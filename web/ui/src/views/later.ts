// What is loaded when it is first wanted, in one file: what is compressed together is a
// sixth smaller than the same in parts.
export { ObjectView } from "./object";
export { Handlers } from "./handlers";
