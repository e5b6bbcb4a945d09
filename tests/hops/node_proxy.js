// SPDX-License-Identifier: Apache-2.0
// A proxy in node, whose requests wait for one of few connections behind it.
//
//     node node_proxy.js PORT HOST:PORT
"use strict";
const http = require("http");

const [host, port] = process.argv[3].split(":");
const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });

http.createServer((request, response) => {
  const asked = http.request({ host, port, agent, path: request.url }, (answer) => {
    response.writeHead(answer.statusCode, { "Content-Length": answer.headers["content-length"] });
    answer.pipe(response);
  });
  asked.on("error", () => response.destroy());
  asked.end();
}).listen(Number(process.argv[2]), "127.0.0.1");
