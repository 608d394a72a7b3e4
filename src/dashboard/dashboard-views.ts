/** Every view is one page: its script shows what the address names, so a link to any view can be shared. */
export const views = [
  '/',
  '/sign-in',
  '/download',
  '/jobs',
  '/jobs/:id',
  '/keys',
  '/requests',
  '/billing',
  '/webhooks',
  '/people',
  '/audit',
  '/service',
  '/account',
];
