import { render } from "preact";
import { App } from "./app";
import { start } from "./resources";
import { follow } from "./route";
import "./style.css";
import "./views.css";
import "./visible";

follow();
start();
render(<App />, document.getElementById("app")!);
