/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 37: negative powers of two; -5 falls in -4. */
BEGIN
{
	@ = quantize(-1);
	@ = quantize(-5);
	@ = quantize(-5);
	@ = quantize(1);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
              -8 |                                         0        
              -4 |@@@@@@@@@@@@@@@@@@@@                     2        
              -2 |                                         0        
              -1 |@@@@@@@@@@                               1        
               0 |                                         0        
               1 |@@@@@@@@@@                               1        
               2 |                                         0        

*/
