"use strict";
// Charts take the place of their drawings as they come into view; every result can be saved.
(function () {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const specs = read("specs");
  const records = read("records");
  const page = document.documentElement;
  page.classList.add("scripts");

  // The text of a tooltip is text: nothing in it is ever parsed as HTML.
  const tip = document.getElementById("tooltip");
  const row = (name, value) => {
    const line = document.createElement("div");
    const label = document.createElement("span");
    label.textContent = name;
    const number = document.createElement("b");
    number.textContent = value;
    line.append(label, number);
    return line;
  };
  const tooltip = (handler, event, item, value) => {
    if (value === null || value === undefined || value === "") {
      tip.hidden = true;
      return;
    }
    if (item && item.isVoronoi && typeof value === "object" && "curve" in value) {
      value.curve = item.datum.datum.series; // Vega-Lite looks names up in the cell, not in its row
    }
    const entries = typeof value === "object" ? Object.entries(value) : [["", value]];
    tip.replaceChildren(...entries.map(([name, said]) => row(name, String(said))));
    tip.hidden = false;
    const size = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, page.clientWidth - size.width - 8);
    const below = event.clientY + 16;
    const top = below + size.height > window.innerHeight ? event.clientY - size.height - 12 : below;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = Math.max(8, top) + "px";
  };

  const options = { renderer: "svg", actions: false, ast: true, tooltip: tooltip, mode: "vega-lite" };
  const draw = (chart) => {
    const live = document.createElement("div");
    live.className = "live";
    chart.append(live);
    const spec = specs[chart.dataset.chart];
    const limit = Math.min(280, Math.max(130, 0.4 * chart.clientWidth)); // labels leave room for bars
    spec.config = { ...spec.config, axisY: { labelLimit: limit } };
    window.vegaEmbed(live, spec, options).then(
      () => {
        const svg = live.querySelector("svg");
        svg.setAttribute("role", "img");
        svg.setAttribute("aria-label", chart.querySelector(".still svg").getAttribute("aria-label"));
        chart.classList.add("ready");
      },
      (error) => {
        live.remove(); // the drawing stays
        console.error(error);
      }
    );
  };
  const charts = document.querySelectorAll("[data-chart]");
  if ("IntersectionObserver" in window) {
    const watch = new IntersectionObserver(
      (seen) => {
        for (const entry of seen) {
          if (entry.isIntersecting) {
            watch.unobserve(entry.target);
            draw(entry.target);
          }
        }
      },
      { rootMargin: "300px 0px" }
    );
    charts.forEach((chart) => watch.observe(chart));
  } else {
    charts.forEach(draw);
  }

  for (const button of document.querySelectorAll("[data-record]")) {
    button.addEventListener("click", () => {
      const record = records[button.dataset.record];
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([record.text], { type: "application/json" }));
      link.download = record.file;
      document.body.append(link);
      link.click();
      link.remove();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  // Print everything, also what is folded away.
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details.verdict:not([open])").forEach((folded) => {
      folded.open = true;
      folded.dataset.folded = "";
    });
  });
  window.addEventListener("afterprint", () => {
    document.querySelectorAll("details[data-folded]").forEach((folded) => {
      folded.open = false;
      delete folded.dataset.folded;
    });
  });
})();
