"use strict";
// Draws each chart once it is in sight, in the colours of the page, and again when these change.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Map();

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const [ink, soft, line] = ["--ink", "--soft", "--line"].map((name) => style.getPropertyValue(name).trim());
    const font = getComputedStyle(document.body).fontFamily;
    const axis = { labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line, titleFontWeight: "normal" };
    return {
      background: "transparent", font, axis, view: { stroke: null },
      legend: { labelColor: soft, titleColor: soft }, text: { color: ink }, rule: { color: ink },
    };
  }

  async function draw(figure) {
    const place = figure.querySelector(".chart");
    const spec = JSON.parse(figure.querySelector("script").textContent);
    drawn.get(figure)?.finalize();
    // `ast`: expressions are interpreted, as the page's policy forbids to compile them
    drawn.set(figure, await vegaEmbed(place, spec, { actions: false, renderer: "svg", ast: true, config: theme(), tooltip: { theme: dark.matches ? "dark" : "light" } }));
    figure.dataset.drawn = "yes";
  }

  const sight = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) {
        sight.unobserve(target);
        draw(target);
      }
    }
  }, { rootMargin: "600px" });
  document.querySelectorAll("figure").forEach((figure) => sight.observe(figure));
  dark.addEventListener("change", () => [...drawn.keys()].forEach(draw));
  addEventListener("beforeprint", () => document.querySelectorAll("figure:not([data-drawn])").forEach(draw));

  function open() {
    const place = document.getElementById(location.hash.slice(1));
    if (place instanceof HTMLDetailsElement) {
      place.open = true;
      place.scrollIntoView();
      place.querySelector("summary").focus();
    }
  }
  // the file's own date: the page itself is the same bytes whenever it is written
  const date = new Date(document.lastModified);
  document.getElementById("written").textContent = `written ${[date.getFullYear(), date.getMonth() + 1, date.getDate()].map((part) => `${part}`.padStart(2, "0")).join("-")}`;

  addEventListener("hashchange", open);
  open();
})();
