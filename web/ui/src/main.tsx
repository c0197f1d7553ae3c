import { render } from "preact";
import { App } from "./app";
import { discover } from "./features";
import { start } from "./resources";
import { follow } from "./route";
import "./style.css";

follow();
start();
void discover();
render(<App />, document.getElementById("app")!);
