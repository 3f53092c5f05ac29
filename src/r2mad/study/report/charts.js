"use strict";
// Pictures become interactive charts as they come into view; what a reader sees before, or prints, is the picture.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const shown = new Map();

  const LIGHTER = { "#0072B2": "#5AB0EE", "#D55E00": "#F08A45", "#AA4499": "#D786C9", "#009E73": "#3CC79B" };

  // The configuration is for a white page: on a dark one greys turn round, and dark colours are lighter.
  const themed = (spec) => {
    if (!dark.matches) return spec;
    const found = JSON.parse(Object.entries(LIGHTER).reduce((text, [from, to]) => text.replaceAll(from, to), JSON.stringify(spec)));
    const config = found.config;
    config.background = "transparent";
    config.view = { ...config.view, stroke: "#444" };
    config.axis = { ...config.axis, labelColor: "#ccc", titleColor: "#ccc", gridColor: "#333", domainColor: "#777", tickColor: "#777" };
    for (const part of ["header", "legend", "title", "text"]) {
      config[part] = { ...config[part], labelColor: "#ccc", titleColor: "#ccc", color: "#ccc" };
    }
    return found;
  };

  const draw = async (figure) => {
    const spec = JSON.parse(figure.querySelector("script.spec").textContent);
    const place = figure.querySelector(".chart");
    shown.get(figure)?.finalize();
    // ast: expressions are interpreted, so that the page's policy need not allow eval
    const actions = { export: { svg: true, png: true }, source: false, compiled: false, editor: false };
    const result = await vegaEmbed(place, themed(spec), { ast: true, renderer: "svg", actions, downloadFileName: figure.id });
    shown.set(figure, result);
    place.hidden = false;
    figure.classList.add("drawn");
  };

  const tried = (figure) => draw(figure).catch((error) => console.warn(`${figure.id} stays a picture: ${error.message}`));
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        watch.unobserve(entry.target);
        tried(entry.target);
      }
    }
  }, { rootMargin: "400px" });
  document.querySelectorAll("figure").forEach((figure) => watch.observe(figure));
  dark.addEventListener("change", () => [...shown.keys()].forEach(tried));
})();
