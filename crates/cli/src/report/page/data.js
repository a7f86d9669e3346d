// The data of the report, which are in the file itself.

const read = (id) => JSON.parse(document.getElementById(id).textContent);
const INDEX = read("data-index");
const pictureAt = (at) => read(`data-picture-${at}`);
