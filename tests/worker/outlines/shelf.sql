create table if not exists shelf ( -- DEF table shelf
    id integer
);
create unique index shelf_id on shelf (id); -- DEF index shelf_id
